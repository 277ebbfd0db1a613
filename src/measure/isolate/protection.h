// What keeps a trial's hands off the user's files on this machine, and how the trial's process gets behind it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace fullbore::isolate {

enum class Protection : uint8_t {
  kView,  // layered_view.h: it writes into layers of its own
  kGuard,  // write_guard.h: the kernel refuses to write elsewhere; modes, owners and times of files can be changed
  kNone,
};

struct Found {
  Protection protection = Protection::kNone;
  std::string why_no_view;  // the kernel's reason; empty where there is one
  std::string how_to_allow;
};

// Tries it, with a directory for layers in `place`: a process enters a view, and makes a file that must not be there. An
// error where no process can be made.
Result<Found> FindProtection(const std::string& place);

// How one trial is kept apart.
struct Apart {
  Protection protection = Protection::kNone;
  std::string scratch;                         // its directory
  std::vector<std::string> written_through;    // directories of ours, such as the run's channel
  std::map<std::string, std::string> outlive;  // of a view, as there
  std::vector<std::string> reached;            // of a view, as there
  std::vector<std::string> writable;           // behind a guard: what is written as it is
};

// In the trial's process, for good: an error means that nothing may be started there. It allocates memory.
Result<void> GoApart(const Apart& apart);

}  // namespace fullbore::isolate
