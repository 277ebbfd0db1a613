// What one device has done for those who hold it, over time. Pure: the time is an argument.
//
// A mean hides a job that worked for an hour and has idled for three days. So what is kept of each holder is its tail:
// since when the device has done nothing for it. And every second that it held the device is in one state, so that the
// states of all holders sum to the time that the device was held; those who share it have equal parts.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/holder.h"

namespace fullbore::agent {

enum class State : uint8_t { kBusy, kIdle, kNoProcess, kUnknown };
inline constexpr size_t kStates = 4;
const char* Name(State state);  // "busy", "idle", "no_process", "unknown"

// One holder of a device, as it was seen in one look.
struct Use {
  Holder holder;
  int64_t processes = 0;  // 0: it was given the device, or had it before, and uses it no more
  std::optional<uint64_t> memory_bytes;
  std::optional<bool> worked;  // the device did, for it, since the last look; nothing where it is not known
};

struct Hold {
  int64_t held_ns = 0;  // since it was first seen
  int64_t processes = 0;
  std::optional<uint64_t> memory_bytes;
  bool worked = false;  // ever
  std::optional<int64_t>
      idle_ns;  // since it did something, or since it holds the device; nothing if not known
  int64_t without_process_ns = 0;         // how long; 0 while it has one
  std::array<double, kStates> seconds{};  // in each state

 private:
  friend class Device;
  int64_t since_ns_ = 0;                  // it was first seen
  int64_t busy_ns_ = 0, process_ns_ = 0;  // the last time that it was so
};

class Device {
 public:
  // `uses` is nothing where it is not known who uses it: holders stay, and the time is of an unknown state.
  void Update(int64_t t_ns, const std::optional<std::vector<Use>>& uses);

  const std::map<Holder, Hold>& holds() const { return holds_; }

 private:
  void Take(const Use& use, int64_t t_ns, double seconds);

  std::map<Holder, Hold> holds_;
  std::optional<int64_t> seen_ns_;
};

}  // namespace fullbore::agent
