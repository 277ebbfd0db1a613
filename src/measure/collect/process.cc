#include "measure/collect/process.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/text.h"

namespace fullbore::collect {

namespace {

// Field `number` of /proc/PID/stat as proc(5) counts them, from 3 on: the name before it may contain blanks.
std::string FieldOf(int64_t pid, size_t number) {
  const auto stat = ReadFile(fmt::format("/proc/{}/stat", pid));
  if (!stat) return "";
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return "";
  const std::vector<std::string_view> words = Words(std::string_view(*stat).substr(name_end + 1));
  return words.size() > number - 3 ? std::string(words[number - 3]) : "";
}

constexpr size_t kState = 3, kStartTime = 22;

}  // namespace

bool IsAlive(int64_t pid) {
  const std::string state = FieldOf(pid, kState);
  return !state.empty() && state != "Z" && state != "X";
}

std::string BeginOf(int64_t pid) { return FieldOf(pid, kStartTime); }

}  // namespace fullbore::collect
