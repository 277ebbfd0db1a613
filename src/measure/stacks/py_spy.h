// A py-spy at work: it samples a process and its children, and leaves a profile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/temporary_directory.h"
#include "measure/stacks/profile.h"

namespace fullbore::stacks {

// Samples a second. At a step's own rate, each sample would meet the same place of it; few steps take 1/61 s.
inline constexpr int kSamplesPerSecond = 61;

class PySpy {
 public:
  static Result<PySpy> Start(const std::string& program, int64_t pid, int64_t seconds);
  PySpy(PySpy&& other) noexcept;
  PySpy& operator=(PySpy&&) = delete;
  ~PySpy();  // ends it

  bool HasEnded();
  void Stop();  // early: the profile is what it has until then
  // After it has ended.
  Result<Profile> Take();

 private:
  PySpy(TemporaryDirectory place, UniqueFd said) : place_(std::move(place)), said_(std::move(said)) {}
  std::string Said() const;  // the last line of its messages

  TemporaryDirectory place_;
  UniqueFd said_;
  pid_t pid_ = -1;
  int64_t target_ = 0;
  int status_ = 0;
};

}  // namespace fullbore::stacks
