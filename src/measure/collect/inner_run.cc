#include "measure/collect/inner_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "base/guarded_file.h"
#include "record/recording.h"

namespace fullbore::collect {

void TellOuterRun(const std::string& channel_directory) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(channel_directory + "/recorder", none)) return;
  const int64_t now_ns = MonotonicNs();
  const nlohmann::json hello = {
      {"t", now_ns}, {"k", "hello"}, {"pid", getpid()}, {"role", record::kRecorderRole}};
  const auto file =
      CreateFile(fmt::format("{}/{}-{}.jsonl", channel_directory, getpid(), now_ns), kPrivateFile);
  const std::string line = hello.dump() + "\n";
  if (file) (void)!write(file->get(), line.data(), line.size());
}

std::vector<int64_t> InnerRecorders(const std::vector<nlohmann::json>& lines) {
  std::vector<int64_t> pids;
  for (const nlohmann::json& line : lines) {
    const auto kind = line.find("k"), role = line.find("role"), pid = line.find("pid");
    if (kind == line.end() || role == line.end() || pid == line.end() || !pid->is_number_integer()) continue;
    if (*kind == "hello" && *role == record::kRecorderRole) pids.push_back(pid->get<int64_t>());
  }
  return pids;
}

}  // namespace fullbore::collect
