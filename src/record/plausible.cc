#include "record/plausible.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "record/json_text.h"
#include "record/limits.h"

namespace fullbore::record {

namespace {

struct Range {
  std::string_view name;
  double least = 0, most = 0;
};

constexpr double kMaxCores = 1 << 16, kMaxBytes = 0x1p60;

// What is counted to, or divided work by. -1 is how libraries say "as many as there are".
constexpr Range kRanges[] = {{"cores", 0, kMaxCores},
                             {"cores_logical", 0, kMaxCores},
                             {"cores_physical", 0, kMaxCores},
                             {"cgroup_cpu_limit", 0, kMaxCores},
                             {"cgroup_memory_limit", 0, kMaxBytes},
                             {"memory_bytes", 0, kMaxBytes},
                             {"gpus", 0, kMaxRanks},
                             {"torch_threads", -1, kMaxCores},
                             {"opencv_threads", -1, kMaxCores},
                             {"omp_num_threads", -1, kMaxCores},
                             {"mkl_num_threads", -1, kMaxCores},
                             {"loader_processes", 0, kMaxCores},
                             {"world_size", 0, kMaxRankNumber + 1},
                             {"local_world_size", 0, kMaxRankNumber + 1}};
// Of a fact with any other name, and within the lists and objects of all.
constexpr double kMaxNumber = 0x1p60;
// A list of what grew, or of a model's layers, takes some kilobytes.
constexpr size_t kMaxFactBytes = 1 << 20;

bool IsWithin(double value, double least, double most) {
  return std::isfinite(value) && value >= least && value <= most;
}

bool IsPlausible(const nlohmann::json& value) {
  if (value.is_number()) return IsWithin(value.get<double>(), -kMaxNumber, kMaxNumber);
  return !value.is_structured() ||
         std::ranges::all_of(value, [](const nlohmann::json& each) { return IsPlausible(each); });
}

bool IsPlausible(std::string_view name, const std::string& text) {
  if (text.size() > kMaxFactBytes) return false;
  const auto range = std::ranges::find(kRanges, name, &Range::name);
  std::string_view number = Trim(text);
  if (number.size() > 1 && number.front() == '"' && number.back() == '"')
    number = number.substr(1, number.size() - 2);  // of an environment variable
  if (const auto value = ParseDouble(number))
    return range == std::end(kRanges) ? IsWithin(*value, -kMaxNumber, kMaxNumber)
                                      : IsWithin(*value, range->least, range->most);
  const bool structured = text.starts_with('[') || text.starts_with('{');
  return !structured || IsPlausible(ParseJson(text));
}

}  // namespace

bool LeaveOutImplausible(std::map<std::string, std::string>& facts) {
  return std::erase_if(facts, [](const auto& fact) { return !IsPlausible(fact.first, fact.second); }) > 0;
}

}  // namespace fullbore::record
