#pragma once

#include <string>

namespace fullbore::cli {

// Where the hook's sitecustomize.py is: named by the environment, installed beside the binary, or linked
// beside it in a build tree. Empty if there is none.
std::string HookDirectory();

// Where the package fullbore is with its extensions, fullbore.data's for Pythons that do not have it installed and the
// hook's: beside the installed hook, or in the build tree. Empty if there is none.
std::string PackageDirectory();

}  // namespace fullbore::cli
