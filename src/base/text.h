// Small text helpers: splitting /proc files, and numbers formatted for people.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

std::string_view Trim(std::string_view text);
std::vector<std::string_view> Split(std::string_view text, char separator);  // keeps empty parts
template <std::same_as<std::string> Temporary>
std::vector<std::string_view> Split(Temporary&& text, char separator) = delete;  // the parts would outlive it
std::vector<std::string_view> Words(std::string_view text);  // runs of blanks are one separator
std::optional<int64_t> ParseInt(std::string_view text);      // the whole text, or nothing
std::optional<double> ParseDouble(std::string_view text);
std::optional<double> ParseSeconds(std::string_view text);  // "90", "90s", "10m", "2h", "7d", "1.5m", "80ms"

std::string FormatDuration(int64_t ns);   // "203 ms", "4 min 12 s"
std::string FormatBytes(double bytes);    // "31 GB" (decimal units, as device makers count)
std::string FormatCount(double count);    // "1,840", "0.25"
std::string FormatPercent(double ratio);  // "41 %", "0.4 %"
std::string FormatFrequency(double hz);   // "1.41 GHz"
std::string FormatUtc(int64_t wall_ns);   // "2026-11-21 09:15:02"
void ReplaceFullStop(std::string& sentence, std::string_view with);  // at its end, if it has one
std::string ShellQuote(std::string_view word);  // as one word of a POSIX shell command line

// A value with its unit, a word of record/metrics.inc or of evidence: "43 %" of "ratio", "1.2 GB/s", "71 C", "5.2 W".
// web/report/format.js says the same: both are held to testing/quantities.tsv.
std::string FormatQuantity(double value, std::string_view unit);

}  // namespace fullbore
