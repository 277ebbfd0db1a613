// A file that stays open inside the training. The script may close its descriptor, as daemons close all of them, and
// open a file of its own under that number: each use asks whether it is still ours. Knows no Python, and is valid when
// all its bytes are 0.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace fullbore::hook {

struct KeptFile {
  enum : char { kNotOpened, kOpen, kMissing } state;
  int fd;
  dev_t device;
  ino_t inode;

  bool IsOurs() const {
    struct stat now {};
    return state == kOpen && fstat(fd, &now) == 0 && now.st_dev == device && now.st_ino == inode;
  }

  // For reading; -1 where it cannot be opened, which is tried once.
  int Get(const char* path) {
    if (IsOurs()) return fd;
    if (state == kMissing) return -1;
    struct stat opened {};
    fd = open(path, O_RDONLY | O_CLOEXEC);
    state = fd >= 0 && fstat(fd, &opened) == 0 ? kOpen : kMissing;
    device = opened.st_dev;
    inode = opened.st_ino;
    return state == kOpen ? fd : -1;
  }

  void Close() {
    if (IsOurs()) close(fd);
    state = kNotOpened;
  }
};

}  // namespace fullbore::hook
