// A counter of the kernel or a driver, as a rate per second over the time between two readings.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace fullbore::probe {

// The increase of a counter, and the time it took.
struct Increment {
  uint64_t count = 0;
  int64_t ns = 0;

  double PerSecond() const { return static_cast<double>(count) * 1e9 / static_cast<double>(ns); }
};

class Counter {
 public:
  enum class Width : uint8_t { k32, k64 };
  explicit Counter(Width width = Width::k64) : width_(width) {}

  // Nothing at the first reading, if no time has passed, and if the counter went backwards: a device that was
  // reset starts over. A 32-bit counter that went backwards by more than half its range has wrapped.
  std::optional<Increment> Advance(int64_t t_ns, uint64_t value) {
    const std::optional<Reading> before = last_;
    last_ = Reading{t_ns, value};
    if (!before || t_ns <= before->t_ns) return std::nullopt;
    uint64_t count = value - before->value;
    if (value < before->value) {
      if (width_ == Width::k64) return std::nullopt;
      count = static_cast<uint32_t>(count);
      if (count > kHalf32) return std::nullopt;
    }
    return Increment{count, t_ns - before->t_ns};
  }

  std::optional<double> RatePerSecond(int64_t t_ns, uint64_t value) {
    const std::optional<Increment> increment = Advance(t_ns, value);
    if (!increment) return std::nullopt;
    return increment->PerSecond();
  }

  void Forget() { last_.reset(); }

 private:
  static constexpr uint64_t kHalf32 = uint64_t{1} << 31;
  struct Reading {
    int64_t t_ns;
    uint64_t value;
  };
  Width width_;
  std::optional<Reading> last_;
};

}  // namespace fullbore::probe
