// All names below a local directory. A million of them take a second with a warm cache: stat is only called
// for links and on file systems that do not report the type of a name.
#pragma once

#include <string>

#include "loader/core/store.h"

namespace fullbore::loader {

// Like Store::Walk. Follows links to directories, but not to one of their own parents.
Result<void> WalkDirectory(const std::string& root, const Store::WalkVisitor& visit);

}  // namespace fullbore::loader
