// As much of a result as an agent reads at once: what is small stays, what is large gives way to its name, by which it
// can be read as a resource. A name is a path into the result: fullbore://reports/3/result/findings/0/evidence; of a
// list, `20-` is what follows its first twenty entries.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/message.h"

namespace fullbore::mcp {

// Takes about `room` bytes as text, whatever it is of.
Json Bounded(const Json& value, const std::string& name, size_t room);

// What a path, "/findings/0", leads to in `value`; "" is all of it.
std::optional<Json> At(const Json& value, std::string_view path);

// The beginning of a text, or its end, in whole characters.
std::string HeadOf(std::string_view text, size_t bytes);
std::string TailOf(std::string_view text, size_t bytes);

}  // namespace fullbore::mcp
