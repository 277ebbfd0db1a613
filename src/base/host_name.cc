#include "base/host_name.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/utf8.h"

namespace fullbore {
namespace {

constexpr size_t kLongestLabel = 63;
constexpr uint32_t kBase = 36, kLeast = 1, kMost = 26;  // of Punycode (RFC 3492), as all that follows

bool IsAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

char Digit(uint32_t value) { return static_cast<char>(value < 26 ? 'a' + value : '0' + (value - 26)); }

uint32_t NextBias(uint32_t delta, uint32_t length, bool is_first) {
  delta = is_first ? delta / 700 : delta / 2;
  delta += delta / length;
  uint32_t bias = 0;
  for (; delta > (kBase - kLeast) * kMost / 2; delta /= kBase - kLeast) bias += kBase;
  return bias + (kBase - kLeast + 1) * delta / (delta + 38);
}

void AppendNumber(std::string& out, uint32_t number, uint32_t bias) {
  for (uint32_t k = kBase;; k += kBase) {
    const uint32_t least = k <= bias ? kLeast : std::min(k - bias, kMost);
    if (number < least) break;
    out += Digit(least + (number - least) % (kBase - least));
    number = (number - least) / (kBase - least);
  }
  out += Digit(number);
}

std::string Punycode(const std::u32string& label) {
  std::string out;
  for (const char32_t c : label) {
    if (c < 0x80) out += static_cast<char>(c);
  }
  const auto plain = static_cast<uint32_t>(out.size());
  if (plain > 0) out += '-';
  uint32_t next = 0x80, delta = 0, bias = 72;
  for (uint32_t done = plain; done < label.size(); ++delta, ++next) {
    uint32_t least = UINT32_MAX;
    for (const char32_t c : label) {
      if (c >= next) least = std::min<uint32_t>(least, c);
    }
    delta += (least - next) * (done + 1);
    next = least;
    for (const char32_t c : label) {
      if (c < next) ++delta;
      if (c != next) continue;
      AppendNumber(out, delta, bias);
      bias = NextBias(delta, done + 1, done == plain);
      delta = 0;
      ++done;
    }
  }
  return out;
}

// In lower case and composed; empty if it is not UTF-8.
std::string Mapped(std::string_view host) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t bytes = utf8proc_map_custom(
      reinterpret_cast<const utf8proc_uint8_t*>(host.data()), static_cast<utf8proc_ssize_t>(host.size()),
      &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT),
      [](utf8proc_int32_t code, void*) { return utf8proc_tolower(code); }, nullptr);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(mapped, &std::free);
  return bytes < 0 ? "" : std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(bytes));
}

std::string AsciiLabel(std::string_view label) {
  if (IsAscii(label)) return std::string(label);
  std::u32string characters;
  for (std::string_view rest = label; !rest.empty();) {
    const Utf8Character front = FrontCharacter(rest);
    characters += front.code;
    rest.remove_prefix(front.bytes);
  }
  return characters.size() > kLongestLabel ? std::string(label) : "xn--" + Punycode(characters);
}

std::string AsciiHost(std::string_view host) {
  std::string out;
  const std::string mapped = Mapped(host);
  if (mapped.empty()) return std::string(host);
  for (size_t from = 0; from <= mapped.size();) {
    const size_t dot = std::min(mapped.find('.', from), mapped.size());
    if (from > 0) out += '.';
    out += AsciiLabel(std::string_view(mapped).substr(from, dot - from));
    from = dot + 1;
  }
  return out;
}

}  // namespace

std::string WithAsciiHost(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url);
  size_t from = scheme + 3;
  const size_t end = std::min(url.find_first_of("/?#", from), url.size());
  const size_t user = url.substr(0, end).rfind('@');
  if (user != std::string_view::npos && user >= from) from = user + 1;
  const size_t to = std::min(url.find(':', from), end);  // an IPv6 address is ASCII
  const std::string_view host = url.substr(from, to - from);
  if (IsAscii(host)) return std::string(url);
  return std::string(url.substr(0, from)) + AsciiHost(host) + std::string(url.substr(to));
}

}  // namespace fullbore
