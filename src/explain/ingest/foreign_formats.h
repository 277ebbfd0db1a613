// Files that people take for traces, or that could become one: told by their first bytes, each with its next step.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fullbore::ingest {

// `head` is the file's beginning, decompressed. An error that says what the file is and what to do; nothing for what
// is read, and for what nobody knows. The name counts only where the bytes say nothing.
std::optional<Error> ForeignFormat(const std::string& path, std::string_view head);

// Windows programs begin UTF-8 text with one.
std::string_view WithoutByteOrderMark(std::string_view text);

}  // namespace fullbore::ingest
