// The one way to print to a terminal: every argument is made printable, whatever it holds. The format strings
// are our own, with their line breaks and colours.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/printable.h"

namespace fullbore {

// Prints text that is already laid out, from printable parts. A failed write (a closed pipe, a full disk) is
// ignored: there is no other place to report it.
inline void PrintLaidOut(std::FILE* out, std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), out);
}

template <typename T>
auto PrintableArgument(const T& value, [[maybe_unused]] bool unicode) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return Printable(value, unicode);
  } else {
    return value;
  }
}

// fmt::format with its text arguments made printable.
template <typename... Args>
std::string FormatPrintable([[maybe_unused]] bool unicode, fmt::format_string<Args...> format,
                            Args&&... args) {
  const auto made = [&](const auto&... shown) {
    return fmt::vformat(format, fmt::make_format_args(shown...));
  };
  return made(PrintableArgument(args, unicode)...);
}

template <typename... Args>
void Print(std::FILE* out, fmt::format_string<Args...> format, Args&&... args) {
  PrintLaidOut(out, FormatPrintable(LocaleIsUtf8(), format, std::forward<Args>(args)...));
}

}  // namespace fullbore
