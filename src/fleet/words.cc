#include "fleet/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"

namespace fullbore::fleet {

namespace {

constexpr double kMostNs = 9e18;  // a database may hold any number, and a duration not

}  // namespace

double Hours(WideNs ns) { return static_cast<double>(ns) / 3.6e12; }

std::string HoursText(WideNs ns) {
  const double hours = Hours(ns);
  return fmt::format("{:.{}f}", hours, hours < 1 ? 3 : hours < 100 ? 1 : 0);
}

std::string TimeText(int64_t ns, int64_t of_ns) {
  constexpr int64_t kHourNs = 3600 * kNsPerSecond;
  return of_ns < kHourNs ? FormatDuration(ns) : HoursText(ns);
}

std::string ShareText(WideNs ns, WideNs of_ns) {
  return of_ns > 0 ? FormatPercent(static_cast<double>(ns) / static_cast<double>(of_ns)) : "";
}

std::string MoneyText(double money, const std::string& currency) {
  return fmt::format("{:.2f}{}{}", money, currency.empty() ? "" : " ", currency);
}

std::string Plural(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string Ranges(const std::vector<size_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last;
  }
  return text;
}

std::string AmountText(std::string_view what, double amount) {
  if (what == "memory") return FormatBytes(amount);
  if (what == "time") return FormatDuration(static_cast<int64_t>(std::clamp(amount, 0.0, kMostNs)));
  return fmt::format("{:.{}f}", amount, amount < 10 ? 1 : 0);
}

std::vector<Asked> AskedAndUsed(const Use& use) {
  std::vector<Asked> rows;
  if (use.cores_given && use.cores_mean && use.cores_p95) {
    rows.push_back(
        {"cores", FormatCount(static_cast<double>(*use.cores_given)),
         fmt::format("{:.1f} on average, {:.1f} at the 95th percentile", *use.cores_mean, *use.cores_p95)});
  }
  if (use.memory_given_bytes && use.memory_peak_bytes) {
    rows.push_back({"memory", FormatBytes(static_cast<double>(*use.memory_given_bytes)),
                    FormatBytes(static_cast<double>(*use.memory_peak_bytes)) + " at most"});
  }
  if (use.time_given_ns && use.time_used_ns)
    rows.push_back({"time", FormatDuration(*use.time_given_ns), FormatDuration(*use.time_used_ns)});
  if (use.gpus_given && use.gpus_used) {
    rows.push_back({"GPUs", FormatCount(static_cast<double>(*use.gpus_given)),
                    use.NeverTouchedItsGpu() ? "none" : FormatCount(static_cast<double>(*use.gpus_used))});
  }
  return rows;
}

}  // namespace fullbore::fleet
