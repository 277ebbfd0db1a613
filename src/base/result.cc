#include "base/result.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "base/printable.h"

namespace fullbore {

namespace {

ErrorCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermission;
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::kNoSpace;
    case EINVAL:
      return ErrorCode::kInvalidArgument;
    case EAGAIN:
    case EBUSY:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace

Error ErrnoError(const std::string& what, int error_number) {
  return {CodeOf(error_number), what + ": " + std::generic_category().message(error_number), ""};
}

std::string ToString(const Error& error) {
  const std::string text = Printable(error.text, true);
  return error.hint.empty() ? text : text + "\nhint: " + Printable(error.hint, true);
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "fullbore: a bug in fullbore at %s:%d: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace fullbore
