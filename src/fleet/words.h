// Figures of device time for people, as all reports of many runs write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/part.h"
#include "fleet/use.h"

namespace fullbore::fleet {

double Hours(WideNs ns);
std::string HoursText(WideNs ns);  // "0.250", "12.5", "1240"
// As a part of so much: in hours, or where all of it is less than one "4 min 12 s".
std::string TimeText(int64_t ns, int64_t of_ns);
std::string ShareText(WideNs ns, WideNs of_ns);  // "43 %"; nothing of nothing
std::string MoneyText(double money,
                      const std::string& currency);      // "12.50 USD"; "12.50" where that is not known
std::string Plural(size_t count, const char* what);      // "1 run", "2 runs"
std::string Ranges(const std::vector<size_t>& numbers);  // "1-3, 5"; sorted, each once

// Of what a job is given beside its devices: "cores", "memory" in bytes, "time" in ns, "GPUs".
std::string AmountText(std::string_view what, double amount);

// What was asked for beside what was used of it, those of which both are known.
struct Asked {
  std::string what, given, used;  // "cores", "8", "1.2 on average, 2.1 at the 95th percentile"
};
std::vector<Asked> AskedAndUsed(const Use& use);

}  // namespace fullbore::fleet
