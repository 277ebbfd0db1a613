#include "serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "base/printable.h"
#include "base/secrets.h"
#include "base/text.h"
#include "explain/diagnose/compare.h"
#include "record/metrics.h"
#include "record/openmetrics.h"
#include "record/run_edit.h"
#include "record/run_reader.h"
#include "report/html.h"
#include "report/json.h"
#include "report/run_csv.h"
#include "serve/metrics_page.h"
#include "serve/page_sources.h"
#include "serve/run_filter.h"
#include "serve/run_order.h"
#include "watch/removal.h"

namespace fullbore::serve {

namespace {

using Json = nlohmann::ordered_json;
using Run = NamedRun;

constexpr size_t kRunsOfAnAnswer = 500, kMostRunsOfAnAnswer = 10'000;
constexpr size_t kFewestCompared = 2, kMostCompared = 8;
constexpr size_t kMaxNoteBytes = 8 << 10, kMaxTags = 64, kMaxTagBytes = 256;

Response JsonAnswer(const Json& json, int status = 200) {
  return Response::Of("application/json",
                      PrintableJson(json.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n",
                      status);
}

Response NotFound(const std::string& what) {
  return Response::Failure(404, "there is no " + what, "/api/v1/openapi.json describes what there is");
}

Response Failed(const Error& error, int status) { return Response::Failure(status, error.text, error.hint); }

Json JudgementJson(const watch::KnownRun& run) {
  const watch::Judgement& judgement = *run.judgement;
  Json json = {{"steps", judgement.steps}};
  if (!judgement.finding.empty()) {
    json["finding"] = judgement.finding;
    if (!judgement.cause.empty()) json["cause"] = judgement.cause;
    json["severity"] = judgement.severity;
    json["verdict"] = judgement.verdict;
    if (!judgement.change.empty()) json["change"] = judgement.change;
    json["speedup"] = judgement.speedup;
    json["waste"] = WasteOf(run);
  } else if (!judgement.verdict.empty()) {
    json["verdict"] = judgement.verdict;  // why there is none
  }
  if (judgement.samples_per_s) json["samples_per_s"] = *judgement.samples_per_s;
  if (judgement.steps > 0) {
    json["steps_per_s"] = judgement.steps_per_s;
    json["mean_step_ns"] = judgement.mean_step_ns;
  }
  json["shares"] = judgement.shares;
  json["sparkline"] = judgement.sparkline;
  return json;
}

Json AboutRun(const std::string& name, const watch::KnownRun& run) {
  const record::RunSummary& summary = run.summary;
  Json json = {{"name", name},
               {"state", Name(run.state)},
               {"begin_unix_ns", summary.wall_begin_ns},
               {"duration_ns", DurationNs(run)},
               {"steps", summary.steps},
               {"bytes", summary.bytes},
               {"command", CommandOf(run)},
               {"tags", summary.tags},
               {"stages", Json::array()}};
  for (const record::Stage& stage : summary.stages) json["stages"].push_back(stage.name);
  if (!summary.note.empty()) json["note"] = summary.note;
  const record::Stage& last = summary.stages.back();
  if (run.state == watch::RunState::kEnded && last.exit_status) json["exit_status"] = *last.exit_status;
  if (last.out_of_memory) json["out_of_memory"] = true;
  if (run.judgement) json["judgement"] = JudgementJson(run);
  return json;
}

// A page with scripts in it, which no page of ours may have: to be saved, not shown.
Response FileAnswer(const std::string& name, std::string page) {
  std::string file = name;
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  std::ranges::replace_if(file, std::not_fn(is_plain), '_');
  Response response = Response::Of("text/html; charset=utf-8", std::move(page));
  response.headers.emplace_back("Content-Disposition", "attachment; filename=\"" + file + ".html\"");
  return response;
}

// The parameter as a number within bounds, `usual` where it is absent.
std::optional<size_t> NumberIn(const Request& request, const char* name, size_t usual, size_t most) {
  const std::string text = request.Query(name);
  if (text.empty()) return usual;
  const auto number = ParseInt(text);
  if (!number || *number < 0 || *number > static_cast<int64_t>(most)) return std::nullopt;
  return static_cast<size_t>(*number);
}

Json CurveJson(const ShownRun& run) {
  Json logged = Json::array();
  for (const ShownRun::Curve::Logged& each : run.curve.logged)
    logged.push_back({{"name", each.name}, {"step", each.step}, {"value", each.value}});
  return {{"unit", run.curve.unit},
          {"step", run.curve.step},
          {"rate", run.curve.rate},
          {"step_ms", run.curve.step_ms},
          {"logged", std::move(logged)}};
}

Result<std::map<std::string, std::string>> TagsIn(const nlohmann::json& json) {
  const Error wrong{ErrorCode::kInvalidArgument, "tags are an object of texts, like {\"lr\": \"3e-4\"}",
                    fmt::format("at most {} of at most {} bytes", kMaxTags, kMaxTagBytes)};
  if (!json.is_object() || json.size() > kMaxTags) return wrong;
  std::map<std::string, std::string> tags;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string() || key.empty() || key.size() > kMaxTagBytes || key.find('=') != std::string::npos)
      return wrong;
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() > kMaxTagBytes) return wrong;
    tags[key] = NamesASecret(key) ? std::string(kMask) : MaskUrls(MaskSecrets(std::string_view(text)));
  }
  return tags;
}

Result<std::string> NoteIn(const nlohmann::json& json) {
  const auto note = json.is_object() ? json.find("note") : json.end();
  if (!json.is_object() || note == json.end() || !note->is_string() ||
      note->get_ref<const std::string&>().size() > kMaxNoteBytes) {
    return Error{ErrorCode::kInvalidArgument, "a note is {\"note\": \"text\"}",
                 fmt::format("at most {} bytes of text", kMaxNoteBytes)};
  }
  return MaskUrls(MaskSecrets(std::string_view(note->get_ref<const std::string&>())));
}

std::string Replaced(std::string text, std::string_view mark, std::string_view by) {
  return text.replace(text.find(mark), mark.size(), by);
}

Response Shell(std::string_view title, std::initializer_list<std::string_view> scripts, int status = 200) {
  std::string elements;
  for (const std::string_view script : scripts)
    elements += fmt::format("<script src=\"/assets/{}.js\" defer></script>\n", script);
  const std::string page = Replaced(std::string(kShellHtml), "@TITLE@", title);
  return Response::Of("text/html; charset=utf-8", Replaced(page, "@SCRIPTS@", elements), status);
}

Response LogInPage(int status) { return Shell("Token", {"base", "common", "login"}, status); }

Response AssetNamed(const std::string& name) {
  if (name == "palette.json") return Response::Of("application/json", report::PaletteJson());
  for (const Asset& asset : kAssets) {
    if (asset.name != name) continue;
    std::string text;
    for (const std::string_view* part : asset.parts) text += part ? *part : std::string_view();
    return Response::Of(std::string(asset.type), std::move(text));
  }
  return NotFound("file '" + name + "'");
}

// Every page is the same shell; its scripts ask for what they show.
Response Page(const Request& request) {
  const std::vector<std::string>& path = request.path;
  if (path.empty()) return Shell("Runs", {"base", "common", "runs"});
  if (path.size() == 2 && path[0] == "runs") return Shell("Run", {"page", "common", "run"});
  if (path.size() == 2 && path[0] == "assets") return AssetNamed(path[1]);
  if (path.size() == 1 && path[0] == "compare") return Shell("Compare", {"page", "common", "compare"});
  if (path.size() == 1 && path[0] == "alerts") return Shell("Alerts", {"base", "common", "alerts"});
  return NotFound("such page");
}

}  // namespace

Api::Api(Parts parts, Access access)
    : parts_(std::move(parts)), access_(std::move(access)), shown_(parts_.explain, parts_.waits_ns) {}

Response Api::Answer(const Request& request) {
  const auto refusal = access_.Refusal(request);
  // A person without the token is shown where to give it.
  if (refusal && refusal->status == 401 && request.Header("accept").find("text/html") != std::string::npos)
    return LogInPage(401);
  return refusal ? *refusal : Route(request);
}

Response Api::Route(const Request& request) {
  const std::vector<std::string>& path = request.path;
  if (path.size() == 1 && path[0] == "healthz") return Health();
  if (path.size() == 1 && path[0] == "metrics")
    return Response::Of(record::kOpenMetrics, MetricsPage(parts_.folder));
  if (path.size() == 1 && path[0] == "login") return LogIn(request);
  if (path.size() >= 3 && path[0] == "api" && path[1] == "v1") return Versioned(request);
  if (request.method != "GET" && request.method != "HEAD")
    return Response::Failure(405, "pages are only read");
  return Page(request);
}

Response Api::LogIn(const Request& request) const {
  if (request.method == "GET" || request.method == "HEAD") return LogInPage(200);
  const auto json = nlohmann::json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  const auto token = json.is_object() ? json.find("token") : json.end();
  if (!json.is_object() || token == json.end() || !token->is_string())
    return Response::Failure(400, "a token is {\"token\": \"text\"}");
  const std::string text = token->get<std::string>();
  if (!access_.IsToken(text)) return Response::Failure(403, "that is not the token");
  Response response = JsonAnswer({{"status", "ok"}});
  response.headers.emplace_back("Set-Cookie",
                                fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict", kTokenCookie, text));
  return response;
}

Response Api::Versioned(const Request& request) {
  const std::string& what = request.path[2];
  const size_t parts = request.path.size();
  const bool writes = request.method != "GET" && request.method != "HEAD";
  if (what == "runs" && parts >= 4) return OneRun(request);
  if (writes) return Response::Failure(405, "only notes and tags of a run can be changed");
  if (what == "runs" && parts == 3) return ListRuns(request);
  if (what == "compare" && parts == 3) return Compare(request);
  if (what == "alerts" && parts == 3) return Alerts();
  if (what == "openapi.json" && parts == 3) return Response::Of("application/json", std::string(kOpenApi));
  return NotFound("'" + what + "' in this version");
}

Response Api::ListRuns(const Request& request) {
  const auto filter = RunFilter::Parse(request.Query("q"));
  if (!filter) return Failed(filter.error(), 400);
  const auto limit = NumberIn(request, "limit", kRunsOfAnAnswer, kMostRunsOfAnAnswer);
  const auto offset = NumberIn(request, "offset", 0, 1'000'000'000);
  if (!limit || !offset) {
    return Response::Failure(400, "limit and offset are numbers",
                             fmt::format("limit is at most {}", kMostRunsOfAnAnswer));
  }
  std::vector<Run> matching;
  for (const auto& [name, run] : parts_.folder.runs()) {
    if (filter->Matches(name, *run)) matching.emplace_back(name, run);
  }
  const std::string sort = request.Query("sort");
  if (!sort.empty() && !SortRuns(matching, sort)) {
    return Response::Failure(400, "runs cannot be sorted by '" + sort + "'", kOrders);
  }
  Json json = {{"total", matching.size()}, {"runs", Json::array()}};
  for (size_t i = *offset; i < std::min(matching.size(), *offset + *limit); ++i)
    json["runs"].push_back(AboutRun(matching[i].first, *matching[i].second));
  return JsonAnswer(json);
}

Response Api::OneRun(const Request& request) {
  const std::string& name = request.path[3];
  const watch::KnownRun* run = parts_.folder.Find(name);
  if (!run) return NotFound("run '" + name + "'");
  if (request.method == "PUT") return Edit(request, name, *run);
  if (request.method == "POST") return Delete(request, name, *run);
  return OfRun(request, name, *run);
}

Response Api::OfRun(const Request& request, const std::string& name, const watch::KnownRun& run) {
  const std::string what = request.path.size() == 5 ? request.path[4] : "";
  if (request.path.size() > 5) return NotFound("such part of a run");
  if (what == "about") {
    Json about = AboutRun(name, run);
    if (MayDelete(run)) about["may_be_deleted"] = true;
    return JsonAnswer(about);
  }
  if (what == "events") {
    const watch::LiveRun* live = parts_.folder.Live(name);
    const std::string now = live && live->seen() ? LiveEvent(*live, false) : "{\"over\":true}";
    Response response = Response::Of("text/event-stream", "retry: 5000\nevent: live\ndata: " + now + "\n\n");
    if (live) response.stream = StreamOf(name);
    return response;
  }
  if (what == "series.csv") {
    const auto recording = record::ReadRun(run.summary.path);
    if (!recording) return Failed(recording.error(), 503);
    Response response = Response::Of("text/csv; charset=utf-8", report::SeriesCsv(*recording));
    response.headers.emplace_back("Content-Disposition", "attachment; filename=\"series.csv\"");
    return response;
  }
  if (!what.empty() && what != "page" && what != "report.html") return NotFound("'" + what + "' of a run");
  const auto shown = shown_.Get(name, run, MonotonicNs());
  if (!shown) return Failed(shown.error(), 503);
  if (!*shown) return Response::Later();
  if (what == "report.html") return FileAnswer(name, report::HtmlOfPage((*shown)->verdict, *(*shown)->page));
  Response response;
  response.body = what == "page" ? (*shown)->page : (*shown)->report;
  return response;
}

bool Api::MayDelete(const watch::KnownRun& run) const {
  return parts_.may_delete && watch::WhyHeld(run).empty();
}

Response Api::Delete(const Request& request, const std::string& name, const watch::KnownRun& run) {
  if (request.path.size() != 5 || request.path[4] != "delete")
    return Response::Failure(405, "notes and tags are PUT, and only `delete` is POST");
  if (!parts_.may_delete)
    return Response::Failure(403, "this server deletes no runs", "start it with --allow-delete");
  if (!request.Header("content-type").starts_with("application/json"))
    return Response::Failure(415, "the body must be application/json");
  const auto json = nlohmann::json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  // The name once more, so that no slip in an address deletes anything.
  if (!json.is_object() || json.value("name", nlohmann::json()) != name)
    return Response::Failure(400, "the body must name the run: {\"name\": \"" + name + "\"}");
  const std::string directory = std::filesystem::path(run.summary.path).parent_path().string();
  watch::FinishRemovals(directory);
  const auto freed = watch::RemoveRun(directory, run);
  if (!freed) return Failed(freed.error(), 409);
  parts_.folder.Tick(MonotonicNs(), WallNs());  // or the list would have it for another second
  return JsonAnswer({{"deleted", name}, {"bytes", *freed}});
}

Response Api::Edit(const Request& request, const std::string& name, const watch::KnownRun& run) {
  const std::string what = request.path.size() == 5 ? request.path[4] : "";
  if (what != "tags" && what != "note")
    return Response::Failure(405, "only notes and tags of a run can be changed");
  // Only a script can send this type, and only one of our own pages may: a form of another site cannot.
  if (!request.Header("content-type").starts_with("application/json"))
    return Response::Failure(415, "the body must be application/json");
  const auto json = nlohmann::json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  const std::string path = run.summary.path;
  Result<void> done;
  if (what == "tags") {
    const auto tags = TagsIn(json);
    if (!tags) return Failed(tags.error(), 400);
    done = record::SetTags(path, *tags);
  } else {
    const auto note = NoteIn(json);
    if (!note) return Failed(note.error(), 400);
    done = record::SetNote(path, *note);
  }
  if (!done) return Failed(done.error(), 503);
  parts_.folder.Reread(name);
  const watch::KnownRun* now = parts_.folder.Find(name);
  return now ? JsonAnswer(AboutRun(name, *now)) : NotFound("run '" + name + "'");
}

Response Api::Compare(const Request& request) {
  std::vector<std::shared_ptr<const ShownRun>> runs;
  const std::string asked = request.Query("runs");
  const std::vector<std::string_view> names = Split(asked, ',');
  if (names.size() < kFewestCompared || names.size() > kMostCompared)
    return Response::Failure(400, "two to eight runs can be compared", "/api/v1/compare?runs=A,B");
  for (const std::string_view each : names) {
    const std::string name(each);
    const watch::KnownRun* run = parts_.folder.Find(name);
    if (!run) return NotFound("run '" + name + "'");
    auto shown = shown_.Get(name, *run, MonotonicNs());
    if (!shown) return Failed(shown.error(), 503);
    if (!*shown) return Response::Later();
    runs.push_back(std::move(*shown));
  }
  Json json = {{"runs", Json::array()}, {"against_first", Json::array()}};
  for (const auto& run : runs) {
    json["runs"].push_back({{"name", run->name},
                            {"about", AboutRun(run->name, *parts_.folder.Find(run->name))},
                            {"report", report::ToJson(run->verdict)},
                            {"curve", CurveJson(*run)}});
  }
  for (size_t i = 1; i < runs.size(); ++i) {
    const diagnose::Diagnosis &first = runs[0]->verdict, &other = runs[i]->verdict;
    json["against_first"].push_back(report::ToJson(first, other, diagnose::Compare(first, other)));
  }
  return JsonAnswer(json);
}

Response Api::Alerts() const {
  Json json = {{"rules", Json::array()}, {"firing", Json::array()}, {"history", Json::array()}};
  return JsonAnswer(parts_.alerts ? parts_.alerts() : json);
}

Response Api::Health() const {
  return JsonAnswer(
      {{"status", "ok"}, {"runs", parts_.folder.runs().size()}, {"running", parts_.folder.live().size()}});
}

std::string Api::LiveEvent(const watch::LiveRun& run, bool over) {
  const diagnose::Diagnosis& minute = run.of_window();
  Json json = {{"over", over}, {"steps", run.steps()}, {"judged_steps", run.of_all().steps}};
  if (minute.steps > 0) {
    json["steps_per_s"] = minute.steps_per_s;
    json["mean_step_ns"] = minute.mean_step_ns;
    json["shares"] = minute.shares;
    if (minute.samples_per_s) json["samples_per_s"] = *minute.samples_per_s;
    if (minute.tokens_per_s) json["tokens_per_s"] = *minute.tokens_per_s;
    if (minute.useful_tokens_per_s) json["useful_tokens_per_s"] = *minute.useful_tokens_per_s;
  }
  Json now = Json::object();
  for (const record::Series& series : run.window().stages.back().series) {
    const bool shown = IsOf(series.key, record::Metric::kGpuUtilization) ||
                       IsOf(series.key, record::Metric::kCpuUtilization);
    if (shown && !series.readings.empty())
      now[record::LabelledName(series.key)] = series.readings.back().value;
  }
  json["now"] = std::move(now);
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace fullbore::serve
