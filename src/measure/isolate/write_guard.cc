#include "measure/isolate/write_guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace fullbore::isolate {

namespace {

// linux/landlock.h, whose newer parts the headers of a distribution may lack. The numbers of the system calls are the
// same on all architectures.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr int kPathBeneath = 1, kAskVersion = 1;
constexpr uint64_t kWriteFile = 1 << 1, kTruncate = 1 << 14, kRefer = 1 << 13;
// The first refuses to rename from one directory to another even where everything is allowed.
constexpr long kUsable = 2;
constexpr uint64_t kOfDirectories =
    0x1ff << 4;  // removing and making directories, files, links, sockets, pipes, devices

struct __attribute__((packed)) Beneath {
  uint64_t allowed;
  int32_t place;
};

// What is refused elsewhere: all of it that this kernel knows.
uint64_t Rights(long version) {
  return kWriteFile | kOfDirectories | kRefer | (version >= 3 ? kTruncate : 0);
}

}  // namespace

UniqueFd MakeWriteGuard(const std::vector<std::string>& places) {
  const long version = syscall(kCreateRuleset, nullptr, size_t{0}, kAskVersion);
  if (version < kUsable) return {};
  const uint64_t rights = Rights(version);
  UniqueFd guard(static_cast<int>(syscall(kCreateRuleset, &rights, sizeof rights, 0)));
  if (guard.get() < 0) return {};
  for (const std::string& path : places) {
    const UniqueFd place(open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status {};
    if (place.get() < 0 || fstat(place.get(), &status) != 0) continue;
    const uint64_t possible = S_ISDIR(status.st_mode) ? rights : rights & (kWriteFile | kTruncate);
    const Beneath beneath = {possible, place.get()};
    (void)syscall(kAddRule, guard.get(), kPathBeneath, &beneath, 0);
  }
  return guard;
}

bool EnterWriteGuard(int guard) {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(kRestrictSelf, guard, 0) == 0;
}

}  // namespace fullbore::isolate
