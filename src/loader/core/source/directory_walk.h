// All names below a local directory. A million of them take a second in a warm cache: no stat but for links
// and for file systems that do not tell a name's type.
#pragma once

#include <string>

#include "loader/core/store.h"

namespace fullbore::loader {

// As Store::Walk. Links to directories are followed, but not into a directory that holds them.
Result<void> WalkDirectory(const std::string& root, const Store::WalkVisitor& visit);

}  // namespace fullbore::loader
