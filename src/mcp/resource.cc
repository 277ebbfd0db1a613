#include "mcp/resource.h"

#include <fmt/format.h>

#include "mcp/bounded.h"

namespace fullbore::mcp {

namespace {

constexpr char kType[] = "application/json";
constexpr std::string_view kRuns = "fullbore://runs";

// Not offered as a tool: the same is a resource.
const Tool& RunsTool() {
  static const Tool tool = {"runs", {"runs"}, "", Says::kOutput, true, {{"runs", Kind::kRuns, "-o", ""}}};
  return tool;
}

}  // namespace

Json ResourceOf(const std::string& uri, const std::string& name, const std::string& description) {
  return {{"uri", uri}, {"name", name}, {"description", description}, {"mimeType", kType}};
}

Json ResourceTemplates() {
  return Json::array({{{"uriTemplate", "fullbore://runs/{id}"},
                       {"name", "run"},
                       {"description", "The report on a recorded run; \"last\" is the newest"},
                       {"mimeType", kType}},
                      {{"uriTemplate", "fullbore://reports/{number}/{+path}"},
                       {"name", "report"},
                       {"description", "A part of what a call answered, as its result names it"},
                       {"mimeType", kType}}});
}

Json ContentsOf(const std::string& uri, const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>()
                                             : value.dump(1, ' ', false, Json::error_handler_t::replace);
  return {{"contents",
           Json::array(
               {{{"uri", uri}, {"mimeType", value.is_string() ? "text/plain" : kType}, {"text", text}}})}};
}

Result<Call> CallOfRuns(const std::string& uri, const Place& place) {
  if (uri == kRuns) return CallOf(RunsTool(), Json::object(), place);
  const std::string folder = std::string(kRuns) + "/";
  const std::string id = uri.starts_with(folder) ? uri.substr(folder.size()) : "";
  if (id.empty() || id.find('/') != std::string::npos) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no resource '{}'", HeadOf(uri, 200)),
                 "resources/list and resources/templates/list name them"};
  }
  return CallOf(*ToolNamed("diagnose"), {{"what", Json::array({id})}}, place);
}

}  // namespace fullbore::mcp
