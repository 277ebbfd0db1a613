// A process's own view of all files: every file system that can be written to lies under an overlay (overlayfs), so that
// whatever the process and all that it starts write, by whatever library, lands in a scratch directory, and is read from
// there at once, under every name. The files themselves are never changed, and never copied for being read.
//
//   what there is                 what the view shows
//   a file system                 an overlay: the file system below, DIRECTORY/upper/N above
//   one in memory (tmpfs)         the same, with the upper layer in memory
//   /proc, /sys, /dev, /run       themselves, not to be changed; devices and sockets work
//   what no overlay can be over   itself, read only
//   `written_through`             itself
//
// Needs a mount namespace: of root's own or, for everybody else, in a user namespace (Linux 5.11). Without root, the
// kernel refuses an overlay over a directory with other mounts below it; such a directory becomes a plain one in
// DIRECTORY, in which each entry is shown by itself, its files read only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace fullbore::isolate {

struct LayeredView {
  std::string directory;                     // scratch, on a file system that can hold an upper layer
  std::vector<std::string> written_through;  // directories that are as they are, for us to read
  std::map<std::string, std::string>
      outlive;  // directories, and the scratch that holds what is written below each
  // Existing directories, besides the working directory, in which something is probably made. Before that, an overlay
  // copies the directories above it, which not even root of a user namespace can do with those of others: so these are
  // there from the beginning. (Others' files can be read there, but not changed.)
  std::vector<std::string> reached;
};

// For good, for this process and its children. In a forked child of a process with one thread: it allocates memory. An
// error leaves the process in a state in which it must do nothing but report and exit.
Result<void> Enter(const LayeredView& view);

// Where what a process in the view of `directory` wrote to `path` (absolute, without links) lies. Empty before one has
// entered it, and for what is not layered.
std::string WrittenAs(const std::string& directory, const std::string& path);

}  // namespace fullbore::isolate
