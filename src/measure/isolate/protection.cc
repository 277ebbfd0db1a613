#include "measure/isolate/protection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/text.h"
#include "measure/isolate/keeper.h"
#include "measure/isolate/layered_view.h"
#include "measure/isolate/scratch.h"
#include "measure/isolate/write_guard.h"

namespace fullbore::isolate {

namespace {

// What makes a kernel refuse namespaces to those who are not root: the file, the value that refuses, and the way out.
struct Switch {
  const char* file;
  const char* refuses;
  const char* allow;
};
constexpr std::array kSwitches = {
    Switch{"/proc/sys/user/max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=10000"},
    Switch{"/proc/sys/kernel/unprivileged_userns_clone", "0",
           "sudo sysctl kernel.unprivileged_userns_clone=1"},
    Switch{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
           "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"}};

std::string HowToAllow() {
  for (const Switch& each : kSwitches) {
    const auto text = ReadFile(each.file);
    if (geteuid() != 0 && text && Trim(*text) == each.refuses) return each.allow;
  }
  return "in a container: docker run --cap-add SYS_ADMIN --security-opt apparmor=unconfined, with the "
         "directory of runs (-o) on a volume; elsewhere: Linux 5.11 or later with overlayfs";
}

bool HasGuard() { return MakeWriteGuard({}).valid(); }

}  // namespace

Result<Found> FindProtection(const std::string& place) {
  Found found;
  found.protection = HasGuard() ? Protection::kGuard : Protection::kNone;
  found.how_to_allow = HowToAllow();
  const auto scratch = Scratch::Make(place);
  if (!scratch) {
    found.why_no_view = scratch.error().text;
    return found;
  }
  const std::string proof = scratch->path() + ".proof";  // beside it, not in it
  const auto entering = Keeper::Start(
      [&] {
        if (auto entered = Enter({scratch->path(), {}, {}, {place}}); !entered) return entered.error();
        if (auto made = CreateFile(proof, kPrivateFile); !made) return made.error();
        _exit(0);
      },
      {scratch->path()}, scratch->lock());
  if (!entering && entering.error().code == ErrorCode::kUnavailable) return entering.error();
  if (!entering) {
    found.why_no_view = entering.error().text;
  } else if (unlink(proof.c_str()) == 0) {
    found.why_no_view = fmt::format("a file made in a view of its own was really made in '{}'", place);
  } else {
    found = Found{Protection::kView, "", ""};
  }
  return found;
}

Result<void> GoApart(const Apart& apart) {
  switch (apart.protection) {
    case Protection::kView:
      return Enter({apart.scratch, apart.written_through, apart.outlive, apart.reached});
    case Protection::kGuard: {
      std::vector<std::string> writable = apart.writable;
      writable.insert(writable.end(), apart.written_through.begin(), apart.written_through.end());
      const UniqueFd guard = MakeWriteGuard(writable);
      if (guard.valid() && EnterWriteGuard(guard.get())) return {};
      return Error{ErrorCode::kUnavailable, "the kernel cannot restrict where the trial writes (Landlock)",
                   ""};
    }
    case Protection::kNone:
      return {};
  }
  return {};
}

}  // namespace fullbore::isolate
