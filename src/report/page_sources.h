// The sources of the page (web/report), embedded at build time by cmake/EmbedText.cmake.
#pragma once

#include <string_view>

namespace fullbore::report {

extern const std::string_view kPageHtml;  // with @TITLE@, @CSS@, @TEXT@, @DATA@ and @JS@ to be filled in
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;

}  // namespace fullbore::report
