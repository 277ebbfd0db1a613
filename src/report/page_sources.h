// The sources of the page (web/report) and the pages of docs/findings, embedded at build time by cmake/EmbedText.cmake.
#pragma once

#include <string_view>

namespace fullbore::report {

extern const std::string_view kPageHtml;  // with @TITLE@, @CSS@, @TEXT@, @DATA@ and @JS@ to be filled in
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;
extern const std::string_view kComparedCss;
extern const std::string_view kComparedJs;
extern const std::string_view kFindingPages;  // one after another

}  // namespace fullbore::report
