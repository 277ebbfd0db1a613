// How deep and how wide a JSON text of others is, told before it is built. nlohmann's parser would tell it while it
// builds, to a callback, but then goes through all entries of a list at the end of each one: for "[{},{},...]" of 1 MB,
// half a minute.
#pragma once

#include <cstddef>
#include <string_view>

namespace fullbore {

struct JsonExtent {
  int depth = 0;      // lists and objects in one another: 2 for [{}]
  size_t values = 0;  // at least so many as are built, names of members included
};

// One pass. Of a text that is no JSON: of what a parser builds until it fails.
JsonExtent ExtentOfJson(std::string_view text);

}  // namespace fullbore
