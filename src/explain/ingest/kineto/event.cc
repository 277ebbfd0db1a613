#include "explain/ingest/kineto/event.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "base/utf8.h"
#include "explain/ingest/kineto/json_window.h"

namespace fullbore::ingest::kineto {
namespace {

std::string_view Slice(const char* begin, const char* after) {
  if (*begin == '"') return {begin + 1, static_cast<size_t>(after - begin) - 2};
  return {begin, static_cast<size_t>(after - begin)};
}

std::string_view* FieldNamed(std::string_view key, RawEvent* event) {
  switch (key.size()) {
    case 2:
      return key == "ts" ? &event->ts : nullptr;
    case 3:
      return key == "cat"   ? &event->category
             : key == "dur" ? &event->dur
             : key == "pid" ? &event->pid
             : key == "tid" ? &event->tid
                            : nullptr;
    case 4:
      return key == "name" ? &event->name : key == "args" ? &event->args : nullptr;
    default:
      return nullptr;
  }
}

__extension__ typedef unsigned __int128 Wide;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Digits with an exponent, the rare way of writing a number: exact as long as the result fits.
std::optional<int64_t> Scaled(std::string_view digits, int exponent, bool negative) {
  constexpr auto kLimit = static_cast<Wide>(std::numeric_limits<int64_t>::max());
  Wide value = 0;
  for (const char c : digits) {
    value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > kLimit * 1000) return std::nullopt;
  }
  bool round_up = false;
  for (; exponent < 0 && value != 0; ++exponent) {
    round_up = value % 10 >= 5;
    value /= 10;
  }
  if (round_up) ++value;
  for (; exponent > 0 && value != 0; --exponent) {
    value *= 10;
    if (value > kLimit) return std::nullopt;
  }
  if (value > kLimit) return std::nullopt;
  const auto magnitude = static_cast<int64_t>(value);
  return negative ? -magnitude : magnitude;
}

std::optional<int64_t> ScaledNumber(std::string_view text, int exponent) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  std::string digits;
  bool fraction = false;
  size_t i = 0;
  for (; i < text.size() && (IsDigit(text[i]) || (text[i] == '.' && !fraction)); ++i) {
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    if (digits.size() < 40) {
      digits += text[i];
      exponent -= fraction;
    } else {
      exponent += !fraction;
    }
  }
  if (digits.empty()) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && text[i] == '+') ++i;
    int written = 0;
    const auto [ptr, status] = std::from_chars(text.data() + i, text.data() + text.size(), written);
    if (status != std::errc() || written > 1000 || written < -1000) return std::nullopt;
    exponent += written;
    i = static_cast<size_t>(ptr - text.data());
  }
  if (i != text.size()) return std::nullopt;
  return Scaled(digits, exponent, negative);
}

// `skip_value` as SkipValue.
template <typename Skip>
Parse ParseWith(Skip skip_value, const char* p, const char* end, RawEvent* event, const char** after) {
  *event = RawEvent{};
  for (;;) {
    p = SkipBlanks(p);
    if (*p == ',') {
      ++p;
      continue;
    }
    if (*p == '}') {
      *after = p + 1;
      return Parse::kOk;
    }
    if (*p != '"') return p >= end ? Parse::kTextEnded : Parse::kBroken;
    const char* key_end = SkipString(p + 1, end);
    if (key_end == nullptr) return Parse::kTextEnded;
    const std::string_view key(p + 1, static_cast<size_t>(key_end - p) - 2);
    p = SkipBlanks(key_end);
    if (*p != ':') return p >= end ? Parse::kTextEnded : Parse::kBroken;
    p = SkipBlanks(p + 1);
    if (p >= end) return Parse::kTextEnded;
    const char* value_end = skip_value(p, end);
    if (value_end == nullptr) return Parse::kTextEnded;
    if (value_end == p) return Parse::kBroken;
    if (std::string_view* field = FieldNamed(key, event)) {
      *field = Slice(p, value_end);
    } else if (key == "ph" && *p == '"' && value_end - p == 3) {
      event->phase = p[1];
    }
    p = value_end;
  }
}

// Whether an object's next member begins at p.
bool IsMember(const char* p, const char* end) {
  constexpr ptrdiff_t kMaxKey = 64;
  if (p >= end || *p != '"') return false;
  const char* key = p + 1;
  for (p = key; p < end && p - key < kMaxKey && *p != '"' && *p != '\\' && *p != '\n'; ++p) {
  }
  return p < end && *p == '"' && *SkipBlanks(p + 1) == ':';
}

const char* SkipDamagedString(const char* p, const char* end) {
  for (; p < end; ++p) {
    if (*p != '"') continue;
    const char* next = SkipBlanks(p + 1);
    if (*next == '}' || (*next == ',' && IsMember(SkipBlanks(next + 1), end)))
      return next < end ? p + 1 : nullptr;
  }
  return nullptr;
}

const char* SkipDamagedValue(const char* p, const char* end) {
  if (*p == '"') return SkipDamagedString(p + 1, end);
  if (*p != '{') return SkipValue(p, end);
  for (++p; p < end; ++p) {  // members: arguments are flat
    p = SkipBlanks(p);
    if (*p == '}') return p + 1;
    if (*p == ',') continue;
    if (!IsMember(p, end)) return nullptr;
    p = SkipBlanks(SkipString(p + 1, end));
    p = SkipBlanks(p + 1);
    p = *p == '"' ? SkipDamagedString(p + 1, end) : SkipValue(p, end);
    if (p == nullptr) return nullptr;
    --p;
  }
  return nullptr;
}

}  // namespace

Parse ParseEvent(const char* p, const char* end, RawEvent* event, const char** after) {
  return ParseWith(SkipValue, p, end, event, after);
}

Parse ParseDamagedEvent(const char* p, const char* end, RawEvent* event, const char** after) {
  return ParseWith(SkipDamagedValue, p, end, event, after);
}

const char* FindNextEvent(const char* p, const char* end) {
  constexpr std::string_view kFirstKey = "\"ph\"";
  while (p < end &&
         (p = static_cast<const char*>(std::memchr(p, '}', static_cast<size_t>(end - p)))) != nullptr) {
    const char* comma = SkipBlanks(++p);
    if (*comma != ',') continue;
    const char* brace = SkipBlanks(comma + 1);
    if (brace >= end || *brace != '{') continue;
    const char* key = SkipBlanks(brace + 1);
    if (key < end && std::string_view(key, static_cast<size_t>(end - key)).starts_with(kFirstKey))
      return brace;
  }
  return nullptr;
}

Members::Members(std::string_view object) : p_(nullptr), end_(nullptr) {
  if (object.empty() || object[0] != '{') return;
  p_ = object.data() + 1;
  end_ = object.data() + object.size();
}

bool Members::Next() {
  if (p_ == nullptr) return false;
  p_ = SkipBlanks(p_);
  if (*p_ == ',') p_ = SkipBlanks(p_ + 1);
  if (p_ >= end_ || *p_ != '"') return false;
  const char* key_end = SkipString(p_ + 1, end_);
  if (key_end == nullptr) return false;
  key_ = {p_ + 1, static_cast<size_t>(key_end - p_) - 2};
  p_ = SkipBlanks(key_end);
  if (p_ >= end_ || *p_ != ':') return false;
  p_ = SkipBlanks(p_ + 1);
  if (p_ >= end_) return false;
  const char* value_end = SkipValue(p_, end_);
  if (value_end == nullptr || value_end == p_) return false;
  value_ = Slice(p_, value_end);
  p_ = value_end;
  return true;
}

std::optional<int64_t> NanosecondsOfMicros(std::string_view text) {
  constexpr int64_t kSafe = std::numeric_limits<int64_t>::max() / 1000 - 1;
  constexpr size_t kDigits = 16;
  int64_t value = 0;
  size_t i = 0;
  while (i < text.size() && i <= kDigits && IsDigit(text[i])) value = value * 10 + (text[i++] - '0');
  if (i == 0 || value > kSafe) return ScaledNumber(text, 3);
  if (i == text.size()) return value * 1000;
  const size_t fraction = text.size() - i - 1;
  if (text[i] != '.' || fraction < 1 || fraction > 3) return ScaledNumber(text, 3);
  for (size_t k = 1; k <= 3; ++k) {
    const char c = k <= fraction ? text[i + k] : '0';
    if (!IsDigit(c)) return ScaledNumber(text, 3);
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<int64_t> Integer(std::string_view text) {
  int64_t value = 0;
  const auto [ptr, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc()) return std::nullopt;
  if (ptr != text.data() + text.size() && *ptr != '.') return std::nullopt;
  return value;
}

int64_t FirstElements(std::string_view dims) {
  const size_t begin = dims.find_first_of("0123456789");
  if (begin == std::string_view::npos) return -1;
  const size_t end = std::min(dims.find(']', begin), dims.size());
  int64_t product = 1;
  for (const auto number : Split(dims.substr(begin, end - begin), ',')) {
    const auto n = ParseInt(Trim(number));
    if (!n || *n < 0 || *n > (int64_t{1} << 40) || product > (int64_t{1} << 40)) return -1;
    product *= *n;
  }
  return product;
}

std::string Unescaped(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  while (!raw.empty()) {
    if (raw[0] == '\\' && raw.size() >= 2) {
      uint32_t code = 0;
      if (raw[1] == 'u' && raw.size() >= 6 &&
          std::from_chars(raw.data() + 2, raw.data() + 6, code, 16).ptr == raw.data() + 6) {
        AppendUtf8(&out, code < 0x20 ? ' ' : code);
        raw.remove_prefix(6);
        continue;
      }
      const bool as_itself = raw[1] == '"' || raw[1] == '\\' || raw[1] == '/';
      out += as_itself ? raw[1] : ' ';
      raw.remove_prefix(2);
      continue;
    }
    const Utf8Character next = FrontCharacter(raw);
    AppendUtf8(&out, next.code < 0x20 ? ' ' : next.code);
    raw.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace fullbore::ingest::kineto
