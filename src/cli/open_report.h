// `fullbore run --open`: the report in the user's browser, where there is a desktop to show it on.
#pragma once

#include <string>

namespace fullbore::cli {

// Starts the desktop's opener on the file, without waiting for it, or says on standard error where the file is.
void OpenReport(const std::string& path);

}  // namespace fullbore::cli
