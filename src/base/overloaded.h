// For std::visit with one lambda per alternative. Unless one of them accepts anything, a forgotten
// alternative does not compile:
//
//   std::visit(Overloaded{[](const Circle& c) { ... }, [](const OneOf<Square, Triangle> auto& s) { ... }},
//              shape);
#pragma once

#include <concepts>

namespace fullbore {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

template <typename T, typename... Types>
concept OneOf = (std::same_as<T, Types> || ...);

}  // namespace fullbore
