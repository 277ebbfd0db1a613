// A diagnosis and its recording as one HTML file: needs no network, opens from disk, light and dark, for
// paper and phones. Texts of the recording reach the page as JSON, and from there only as text nodes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::report {

// The charts show the judged stage (diagnose::JudgedStage). A few hundred kilobytes, however long the run
// was: series and step windows are thinned out to what a screen can show.
std::string ToHtml(const diagnose::Diagnosis& diagnosis, const record::Recording& recording);
// With more than a recording has: `more` is merged into what the page is made of.
std::string ToHtml(const diagnose::Diagnosis& diagnosis, const record::Recording& recording,
                   const nlohmann::ordered_json& more);

// What such a page is built from, as JSON, for a page that fetches it. Private to web/; may change with it.
std::string PageJson(const diagnose::Diagnosis& diagnosis, const record::Recording& recording);
// The file of ToHtml from that: what such a page shows, to be kept and sent.
std::string HtmlOfPage(const diagnose::Diagnosis& diagnosis, const std::string& page_json);
std::string PaletteJson();  // how shares look, as in the above

}  // namespace fullbore::report
