// One event of a PyTorch-profiler trace (Chrome trace format), as slices of the text that holds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fullbore::ingest::kineto {

// Strings are without their quotes and still escaped; numbers as written. Absent fields are empty.
struct RawEvent {
  char phase =
      0;  // 'X' complete, 'B'/'E' begin and end, 'i' instant, 's'/'f' flow, 'M' metadata, 'C' counter
  std::string_view category, name, pid, tid, ts, dur, args;
};

enum class Parse : uint8_t { kOk, kTextEnded, kBroken };

// `p` is just after the event's opening brace; on kOk `*after` is just after the closing one.
Parse ParseEvent(const char* p, const char* end, RawEvent* event, const char** after);

// The same for an event whose strings hold quotes and backslashes as they are: "C:\data\" and "say "hi"" (PyTorch
// before 2.2 escapes neither). A string ends at the first quote behind which an object can go on.
Parse ParseDamagedEvent(const char* p, const char* end, RawEvent* event, const char** after);

// The opening brace of the first event that begins behind another one, between `p` and `end`, as Kineto writes them
// ("ph" first); null if none does. `p` may stand inside of a string.
const char* FindNextEvent(const char* p, const char* end);

// Walks the members of an object: `object` begins with '{' and lies in a window (kPadding bytes may be read
// behind it). Values as in RawEvent, objects and arrays whole.
class Members {
 public:
  explicit Members(std::string_view object);
  bool Next();
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }

 private:
  const char* p_;
  const char* end_;
  std::string_view key_, value_;
};

// Microseconds with a fraction, as nanoseconds, digit by digit: a double would lose nanoseconds beyond 2^53.
// Nothing if the text is not a number or the result does not fit.
std::optional<int64_t> NanosecondsOfMicros(std::string_view text);
std::optional<int64_t> Integer(std::string_view text);  // a fraction is cut off

// The product of the first list of numbers in "[[394241], [3, 4]]": the first tensor's elements. -1 where there is
// none.
int64_t FirstElements(std::string_view dims);

// The string without JSON escapes; control characters become blanks, broken UTF-8 becomes U+FFFD.
std::string Unescaped(std::string_view raw);

}  // namespace fullbore::ingest::kineto
