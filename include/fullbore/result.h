// Result<T>: the return value of a call that can fail for reasons outside the program (a file, a driver, an
// argument). Bugs are not results: FB_CHECK ends the process with a line that says where.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace fullbore {

enum class ErrorCode {
  kInvalidArgument,  // the user asked for something impossible: exit status 2
  kNotFound,
  kPermission,
  kNoSpace,
  kCorrupt,      // the bytes are not what they claim to be
  kUnsupported,  // not supported by this machine, version or format
  kUnavailable,  // exists, but is not available now
  kTimeout,      // not within the given time: ask again
  kIo,
  kInternal,
};

// `text` says what failed, with which value and why; `hint` says what to do next, and may be empty.
// Do not match on the texts.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string text;
  std::string hint;
};

// An error for a failed system call: "cannot read '/x': Permission denied".
Error ErrnoError(const std::string& what, int error_number);

// "text" or "text\nhint: hint", as shown to people, with terminal control characters in names made harmless.
std::string ToString(const Error& error);

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

#define FB_CHECK(condition) ((condition) ? (void)0 : ::fullbore::CheckFailed(#condition, __FILE__, __LINE__))

template <typename T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return FB_CHECK(ok()), std::get<0>(state_); }
  const T& value() const& { return FB_CHECK(ok()), std::get<0>(state_); }
  T&& value() && { return FB_CHECK(ok()), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return FB_CHECK(!ok()), std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return FB_CHECK(!ok()), *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace fullbore
