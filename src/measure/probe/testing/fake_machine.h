// For tests of probes: a machine made of files in a temporary directory, and a sink
// that stores what it receives.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/testing/scratch_directory.h"
#include "measure/probe/probe.h"

namespace fullbore::probe {

class FakeMachine {
 public:
  const std::string& root() const { return directory_.path(); }
  Machine machine(int64_t command_pid = 0, std::string run_id = "") const {
    return {root(), command_pid, std::move(run_id)};
  }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  }
  void MakeDirectory(const std::string& path) const { std::filesystem::create_directories(root() + path); }
  void Link(const std::string& path, const std::string& target) const {
    const std::filesystem::path link = root() + path;
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::create_directory_symlink(root() + target, link);
  }
  void Remove(const std::string& path) const { std::filesystem::remove_all(root() + path); }

 private:
  ScratchDirectory directory_;
};

class FakeSink : public Sink {
 public:
  void Read(const record::SeriesKey& key, int64_t t_ns, double value) override {
    series_[LabelledName(key)].push_back({t_ns, value});
  }
  void Say(record::Severity, std::string_view source, std::string_view text) override {
    messages.push_back(std::string(source) + ": " + std::string(text));
  }
  void SetMachineFact(std::string_view key, std::string_view value) override {
    facts[std::string(key)] = std::string(value);
  }

  // "disk_read{device=vda}"
  std::optional<double> Last(const std::string& title) const {
    const auto found = series_.find(title);
    if (found == series_.end()) return std::nullopt;
    return found->second.back().value;
  }
  size_t Count(const std::string& title) const {
    const auto found = series_.find(title);
    return found == series_.end() ? 0 : found->second.size();
  }
  size_t series_count() const { return series_.size(); }
  void Clear() { series_.clear(); }

  std::vector<std::string> messages;
  std::map<std::string, std::string> facts;

 private:
  std::map<std::string, std::vector<record::Reading>> series_;
};

constexpr int64_t Seconds(double s) { return static_cast<int64_t>(s * 1e9); }

}  // namespace fullbore::probe
