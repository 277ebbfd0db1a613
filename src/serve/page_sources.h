// The pages of `serve` (web/serve), embedded at build time by cmake/EmbedText.cmake, and what they share with the HTML
// report (web/report).
#pragma once

#include <array>
#include <string_view>

#include "report/page_sources.h"

namespace fullbore::serve {

extern const std::string_view kShellHtml;  // with @TITLE@ and @SCRIPTS@ to be filled in
// kBaseJs is the part of the report's scripts that every page needs; report::kPageJs holds it, too.
extern const std::string_view kServeCss, kBaseJs, kCommonJs, kRunsJs, kRunJs, kCompareJs, kAlertsJs, kLoginJs;
extern const std::string_view kOpenApi;

inline constexpr std::string_view kJs = "text/javascript; charset=utf-8", kCss = "text/css; charset=utf-8";

struct Asset {
  std::string_view name, type;
  std::array<const std::string_view*, 2> parts;  // one after the other; the second may be null
};

inline const std::array kAssets = {Asset{"page.css", kCss, {&report::kPageCss, &kServeCss}},
                                   Asset{"page.js", kJs, {&report::kPageJs}},
                                   Asset{"base.js", kJs, {&kBaseJs}},
                                   Asset{"common.js", kJs, {&kCommonJs}},
                                   Asset{"runs.js", kJs, {&kRunsJs}},
                                   Asset{"run.js", kJs, {&kRunJs}},
                                   Asset{"compare.js", kJs, {&kCompareJs}},
                                   Asset{"alerts.js", kJs, {&kAlertsJs}},
                                   Asset{"login.js", kJs, {&kLoginJs}}};

}  // namespace fullbore::serve
