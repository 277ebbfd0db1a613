#include "base/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace fullbore {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

template <typename T>
std::optional<T> ParseWhole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

struct Prefixed {
  double value;
  std::string_view prefix;
};

Prefixed WithPrefix(double value) {
  static constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  return {value, kPrefixes[prefix]};
}

}  // namespace

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string_view::npos; begin = end + 1) {
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = text.find_first_not_of(kBlanks);
  while (begin != std::string_view::npos) {
    size_t end = text.find_first_of(kBlanks, begin);
    if (end == std::string_view::npos) end = text.size();
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::optional<int64_t> ParseInt(std::string_view text) { return ParseWhole<int64_t>(text); }
std::optional<double> ParseDouble(std::string_view text) { return ParseWhole<double>(text); }

std::optional<double> ParseSeconds(std::string_view text) {
  if (text.empty()) return std::nullopt;
  double unit = 1;
  if (text.ends_with("ms")) {
    unit = 1e-3;
    text.remove_suffix(2);
  } else if (const char last = text.back(); last == 's' || last == 'm' || last == 'h' || last == 'd') {
    unit = last == 's' ? 1 : last == 'm' ? 60 : last == 'h' ? 3600 : 86400;
    text.remove_suffix(1);
  }
  const auto number = ParseDouble(text);
  if (!number) return std::nullopt;
  return *number * unit;
}

std::string FormatDuration(int64_t ns) {
  const double s = static_cast<double>(ns) / 1e9;
  const double magnitude = std::abs(s);
  if (ns == 0) return "0 s";
  if (magnitude < 1e-6) return fmt::format("{} ns", ns);
  if (magnitude < 1e-3) return fmt::format("{:.{}f} us", s * 1e6, magnitude < 1e-5 ? 1 : 0);
  if (magnitude < 1) return fmt::format("{:.{}f} ms", s * 1e3, magnitude < 1e-2 ? 1 : 0);
  if (magnitude < 60) return fmt::format("{:.{}f} s", s, magnitude < 10 ? 1 : 0);
  const auto whole = static_cast<int64_t>(std::llround(s));
  if (std::llabs(whole) < 3600) return fmt::format("{} min {} s", whole / 60, std::llabs(whole % 60));
  return fmt::format("{} h {} min", whole / 3600, std::llabs(whole % 3600) / 60);
}

std::string FormatBytes(double bytes) {
  const auto [value, prefix] = WithPrefix(bytes);
  return fmt::format("{:.{}f} {}B", value, !prefix.empty() && std::abs(value) < 9.95 ? 1 : 0, prefix);
}

std::string FormatCount(double count) {
  const double magnitude = std::abs(count);
  if (magnitude < 9.995 && count != std::floor(count)) return fmt::format("{:.2f}", count);
  if (magnitude < 99.95 && count != std::floor(count)) return fmt::format("{:.1f}", count);
  std::string digits = fmt::format("{:.0f}", magnitude);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return count < 0 ? "-" + digits : digits;
}

std::string FormatPercent(double ratio) {
  const double percent = ratio * 100;
  return fmt::format("{:.{}f} %", percent, std::abs(percent) < 0.95 && percent != 0 ? 1 : 0);
}

std::string FormatFrequency(double hz) {
  return hz >= 1e9 ? fmt::format("{:.2f} GHz", hz / 1e9) : fmt::format("{:.0f} MHz", hz / 1e6);
}

std::string FormatQuantity(double value, std::string_view unit) {
  if (unit == "ratio") return FormatPercent(value);
  if (unit == "bytes") return FormatBytes(value);
  if (unit == "bytes/s") return FormatBytes(value) + "/s";
  if (unit == "ns") return FormatDuration(std::llround(value));
  if (unit == "s") return FormatDuration(std::llround(value * 1e9));
  if (unit == "Hz") return FormatFrequency(value);
  if (unit == "FLOP/s") {
    const auto [rate, prefix] = WithPrefix(value);
    return fmt::format("{} {}FLOP/s", FormatCount(rate), prefix);
  }
  if (unit == "celsius") return FormatCount(value) + " C";
  if (unit == "count" || unit.empty()) return FormatCount(value);
  return fmt::format("{} {}", FormatCount(value), unit);
}

std::string FormatUtc(int64_t wall_ns) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(wall_ns / 1'000'000'000)));
}

void ReplaceFullStop(std::string& sentence, std::string_view with) {
  if (sentence.ends_with('.')) sentence.pop_back();
  sentence += with;
}

std::string ShellQuote(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace fullbore
