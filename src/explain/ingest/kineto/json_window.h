// A window that slides over the text of a large JSON file, and the few steps that a trace needs in it. Not a
// general parser: it finds the ends of values and leaves their meaning to the caller, and it is lenient where
// writers of traces are wrong (control characters and broken UTF-8 inside strings pass).
//
// Why not an existing JSON parser: a trace asks for three things at once. Many gigabytes in bounded memory at
// 750 MB/s (docs/measurements.md; simdjson wants the whole text in memory), microseconds with a fraction as
// exact nanoseconds (a double loses them), and tolerance of control characters inside names, which a JSON
// parser has to reject. Truncation at every length, mutations and a fuzz target test it.
//
// The text is cut into whole values: a value that reaches past the window makes it slide and grow (to
// kMaxValue), so memory follows the largest single event, never the file. Measured: the scan alone runs at
// over 1 GB/s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "explain/ingest/byte_source.h"

namespace fullbore::ingest::kineto {

// Steps over text that ends in kPadding zero bytes. Each returns where it stopped, null if the text ended.

inline constexpr size_t kPadding = 64;

inline const char* SkipBlanks(const char* p) {
  while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') ++p;
  return p;
}
const char* SkipString(const char* p,
                       const char* end);  // p: after the opening quote -> after the closing one
const char* SkipContainer(const char* p,
                          const char* end);             // p: after the opening bracket -> after its partner
const char* SkipValue(const char* p, const char* end);  // p: the value's first character -> after it

class JsonWindow {
 public:
  static constexpr size_t kMaxValue = 64 << 20;

  explicit JsonWindow(std::unique_ptr<ByteSource> source, size_t initial_bytes = 1 << 20);

  const char* cursor() const { return text_.data() + begin_; }
  const char* end() const { return text_.data() + end_; }                    // zero bytes follow
  int64_t offset() const { return offset_ + static_cast<int64_t>(begin_); }  // of the cursor, in the text
  int64_t end_offset() const { return offset_ + static_cast<int64_t>(end_); }
  void MoveTo(const char* p) { begin_ = static_cast<size_t>(p - text_.data()); }

  // Reads more behind what is there; pointers into the window die. False at the end of the text, after an
  // error() of the source, or when the value at the cursor is larger than kMaxValue.
  bool Grow();

  // The next character that is not blank, 0 at the end of the text; the cursor stands on it.
  char Peek();

  // At the beginning of the text: past what Windows programs begin UTF-8 text with.
  void SkipByteOrderMark();

  // The whole value at the cursor, which moves behind it; empty at the end of the text. Valid until the next
  // call.
  std::string_view TakeValue();

  // Past a value of any size without keeping it. False where the text ends inside it.
  bool SkipAny();

  bool at_end() const { return at_end_; }
  const ByteSource& source() const { return *source_; }
  const Error* error() const { return failed_ ? &error_ : nullptr; }

 private:
  std::unique_ptr<ByteSource> source_;
  std::vector<char> text_;
  size_t begin_ = 0;
  size_t end_ = 0;
  int64_t offset_ = 0;  // of text_[0]
  bool at_end_ = false;
  bool failed_ = false;
  Error error_;
};

}  // namespace fullbore::ingest::kineto
