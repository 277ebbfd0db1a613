// Files and directories of ours where others may write too: /tmp, a directory of runs or a cache of several
// users. A name that we are about to use may stand there already for something of theirs: a link to a file of
// ours, a FIFO that would keep us waiting, a directory whose content they exchange under us.
//
// None of these functions follows a link at the end of a path, waits for a FIFO, or uses what was planted:
// what belongs to another user (root apart) and lies where everybody may write. What another user keeps where
// only chosen ones may write is taken for shared on purpose.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace fullbore {

inline constexpr mode_t kPrivateFile = 0600, kPrivateDirectory = 0700;
inline constexpr mode_t kOrdinaryFile = 0666;  // less the umask, as programs create what a user names

// A new file, for reading and writing; an error where the name is taken, by whatever it is.
Result<UniqueFd> CreateFile(const std::string& path, mode_t mode);

// The same in the place of what an earlier process left under that name, which is removed.
Result<UniqueFd> CreateFileAnew(const std::string& path, mode_t mode);

// A regular file that several processes share, for reading and writing; created where it is missing.
Result<UniqueFd> OpenOrCreateFile(const std::string& path, mode_t mode);

// The same without opening it. True: it was created.
Result<bool> CreateFileIfMissing(const std::string& path, mode_t mode);

// A regular file, for reading.
Result<UniqueFd> OpenRegularFile(const std::string& path);

// The whole text under `path` at once, or nothing: written beside it under a name that nobody can foresee.
Result<void> WriteFileAtOnce(const std::string& path, std::string_view text, mode_t mode);

// A directory that is made where it is missing; parents that are missing are private. It may have been there,
// and may be another user's: what is created in it by the functions above is safe all the same.
Result<void> MakeDirectory(const std::string& path, mode_t mode);

// The same of which the content is to be trusted, too: an error where it was planted.
Result<void> MakeTrustedDirectory(const std::string& path, mode_t mode);

// A new directory that only this user may enter. Its name is `prefix`, a dot and six letters.
Result<std::string> MakeUniqueDirectory(const std::string& prefix);

// Whether `user` cannot trust what `entry` describes, in a directory that `parent` describes.
bool CouldBePlanted(const struct stat& entry, const struct stat& parent, uid_t user);

}  // namespace fullbore
