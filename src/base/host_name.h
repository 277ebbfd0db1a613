// Host names with letters beyond ASCII, as DNS and certificates know them. Ours, since a libcurl that can do so needs 0.8 MB
// more, and does it only in a process whose locale is one of UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace fullbore {

// "https://xn--mnchen-3ya.example/x" for "https://München.example/x": IDNA 2008 with the mapping of UTS 46 (lower case,
// NFKC), but without its list of what may not stand in a name: no registry has such a name. Any other text unchanged.
std::string WithAsciiHost(std::string_view url);

}  // namespace fullbore
