// Our files and directories in places where others may write too: /tmp, or a directory of runs or a
// cache that several users share. The name we are about to use may already be taken by something
// planted: a symbolic link to one of our files, a FIFO that would block us, a directory whose contents
// another user swaps under us.
//
// None of these functions follows a link at the end of a path, waits for a FIFO, or uses a planted file: one
// that belongs to another user (other than root) in a directory that everybody can write to. A file of
// another user in a directory that only selected users can write to counts as shared on purpose.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace fullbore {

inline constexpr mode_t kPrivateFile = 0600, kPrivateDirectory = 0700;
inline constexpr mode_t kOrdinaryFile = 0666;  // minus the umask, as for any file that a user names

// A new file, for reading and writing; an error if the name exists, whatever kind of file it is.
Result<UniqueFd> CreateFile(const std::string& path, mode_t mode);

// The same, but first removes what an earlier process left under that name.
Result<UniqueFd> CreateFileAnew(const std::string& path, mode_t mode);

// A regular file that several processes share, for reading and writing; created if missing.
Result<UniqueFd> OpenOrCreateFile(const std::string& path, mode_t mode);

// The same without opening it. True if it was created.
Result<bool> CreateFileIfMissing(const std::string& path, mode_t mode);

// A regular file, for reading.
Result<UniqueFd> OpenRegularFile(const std::string& path);

enum class IfThere { kReplace, kRefuse };

// Writes the whole text to `path` atomically: first to an unpredictable name beside it, then renamed.
Result<void> WriteFileAtOnce(const std::string& path, std::string_view text, mode_t mode,
                             IfThere if_there = IfThere::kReplace);

// A directory, created if missing; missing parents are created private. It may have existed before and may
// belong to another user: creating files in it with the functions above is still safe.
Result<void> MakeDirectory(const std::string& path, mode_t mode);

// The same for a directory whose contents must be trusted, too: an error if it was planted.
Result<void> MakeTrustedDirectory(const std::string& path, mode_t mode);

// A new directory that only this user may enter, named `prefix`, a dot and six random letters.
Result<std::string> MakeUniqueDirectory(const std::string& prefix);

// Whether `user` must not trust what `entry` describes, in the directory that `parent` describes.
bool CouldBePlanted(const struct stat& entry, const struct stat& parent, uid_t user);

}  // namespace fullbore
