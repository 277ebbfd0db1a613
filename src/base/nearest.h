// What a mistyped word was probably meant to be: "did you mean ...?".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

// How many letters to insert, drop, change or swap with their neighbour to get from one word to the other.
size_t EditDistance(std::string_view a, std::string_view b);

// The candidate that was most likely meant: the nearest one, the first of equals, if at most about a third
// of the letters differ. Otherwise the only candidate that contains the word ("tensor" in
// "no-tensor-cores"), or nothing.
std::optional<std::string> Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace fullbore
