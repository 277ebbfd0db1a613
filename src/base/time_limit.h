// A limit to what a piece of work may take, for work on files of others: long loops ask Check(), which throws once the
// time is over. Of the thread that made it; limits nest, the inner one counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace fullbore {

class OutOfTime : public std::exception {
 public:
  const char* what() const noexcept override { return "it took too long"; }
};

class TimeLimit {
 public:
  // `stop` ends it early, from any thread.
  explicit TimeLimit(int64_t ns, const std::atomic<bool>* stop = nullptr);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  // Throws OutOfTime. Where there is no limit it costs a few instructions, else the time of a look at the clock.
  static void Check();

 private:
  const int64_t until_ns_;
  const std::atomic<bool>* const stop_;
  const TimeLimit* const outer_;
};

}  // namespace fullbore
