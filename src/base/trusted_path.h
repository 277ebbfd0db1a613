// Whether somebody else decides what a path leads to. A name that another process gave us, or a directory in a place where
// others may write, can lead to a program or into a folder of another user's choice: one of the directories on the way
// belongs to him, is open to everybody, or is a link that he made.
#pragma once

#include <string>

#include "base/result.h"

namespace fullbore {

// Who, besides this user and root, may have a say in it.
enum class Others {
  kNone,  // nobody: for a program that we are about to run
  kChosen,  // those whom an owner let in, by a group or as the owner of a parent: for a folder that a team shares
};

// Goes along `path` ("" is the working directory), through every link, and returns where it leads, free of links. Fails with kPermission at the first
// entry that somebody else could have put there or could exchange, and says whose it is. Since he can exchange none of
// them afterwards either, the path that is returned may be used as it is. From a part on that does not exist, or that
// may not be looked at, nothing is checked: nobody can use it.
Result<std::string> TrustedPath(const std::string& path, Others others);

// "'alice'", or "number 1234" for a user without a name: for a sentence.
std::string UserName(unsigned user);
// "alice", or "1234".
std::string LoginName(unsigned user);

}  // namespace fullbore
