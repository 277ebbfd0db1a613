#include "base/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/fd.h"
#include "base/file_head.h"
#include "base/text.h"

namespace fullbore {

namespace {

const char* KindOf(const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return "a directory";
  if (S_ISFIFO(status.st_mode)) return "a FIFO";
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) return "a device";
  return "a socket";
}

}  // namespace

Result<std::string> ReadSmallFile(const std::string& path, size_t most) {
  // O_NONBLOCK, because a FIFO would make us wait for a writer.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!fd.valid() || fstat(fd.get(), &status) != 0) return ErrnoError("cannot open '" + path + "'", errno);
  if (!S_ISREG(status.st_mode))
    return Error{ErrorCode::kInvalidArgument, "cannot read '" + path + "': it is " + KindOf(status),
                 "name a regular file"};
  auto text = ReadHead(fd.get(), path, most + 1);
  if (!text) return text;
  if (text->size() > most) {
    return Error{ErrorCode::kInvalidArgument,
                 "cannot read '" + path + "': it is longer than " + FormatBytes(static_cast<double>(most)),
                 "see whether it is the file that was meant"};
  }
  text->shrink_to_fit();
  return text;
}

}  // namespace fullbore
