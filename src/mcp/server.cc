#include "mcp/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/printable.h"
#include "mcp/bounded.h"
#include "mcp/resource.h"

namespace fullbore::mcp {

namespace {

// The newest first: what a client is offered that asks for one that we do not know.
constexpr std::array kProtocols = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
constexpr size_t kMostCalls = 8;  // at a time; of those that measure, one
constexpr size_t kMostAsked = 4;
constexpr size_t kMostReports = 32, kMostReportBytes = 16 << 20;
constexpr size_t kTextRoom = 6 << 10, kResultRoom = 24 << 10, kResourceRoom = 256 << 10;
constexpr int64_t kProgressNs = kNsPerSecond;
constexpr char kReports[] = "fullbore://reports/";
constexpr char kRuns[] = "fullbore://runs";

constexpr char kInstructions[] =
    "Fullbore finds the narrowest pipe of a training run. Ask diagnose first, for a recorded run, a trace or a process; "
    "run records one. Explain a finding with explain_finding, predict with what_if, and claim no gain without compare: "
    "its \"claim\" says whether one is proven. Every result ends with next_step.";

Json TextBlock(const std::string& text) { return {{"type", "text"}, {"text", text}}; }

// As the command line says it.
Json ErrorResult(const std::string& text) {
  return {{"content", Json::array({TextBlock(text)})}, {"isError", true}};
}

Json ErrorResult(const Error& error) { return ErrorResult("fullbore: " + ToString(error)); }

bool Measures(const Call& call) { return !call.starts.empty(); }

Json AllToolsJson() {
  Json tools = Json::array();
  for (const Tool& tool : AllTools()) {
    const bool starts = std::ranges::any_of(tool.parameters, [](const Parameter& each) {
      return each.kind == Kind::kCommand || each.kind == Kind::kProcess;
    });
    tools.push_back({{"name", tool.name},
                     {"description", tool.description},
                     {"inputSchema", SchemaOf(tool)},
                     {"annotations", {{"readOnlyHint", !starts}, {"openWorldHint", false}}}});
  }
  return tools;
}

// What a person has to know to say yes or no.
std::string QuestionOf(const Call& call) {
  std::string text = fmt::format("An agent asks fullbore {} to start:", call.tool->name);
  for (const std::string& command : call.starts) text += "\n  " + Printable(command, true);
  return text + "\nAllow it?";
}

Error NotAllowed(const Call& call) {
  return {
      ErrorCode::kPermission, fmt::format("{} starts a process, which was not allowed", call.tool->name),
      "start the server with --allow-run (fullbore mcp --allow-run), or use a client that asks you (elicitation)"};
}

Error Busy() {
  return {ErrorCode::kUnavailable, "another call is still measuring, or too many calls are running",
          "wait for it to end, or cancel it"};
}

const Json& MemberOf(const Json& object, const char* name) {
  static const Json nothing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : nothing;
}

std::string TextIn(const Json& object, const char* name) {
  const Json& member = MemberOf(object, name);
  return member.is_string() ? member.get<std::string>() : "";
}

}  // namespace

void Server::Refuse(const Json& id, Fault fault, const std::string& text) {
  send_(Failure({id, fault, text}));
}

bool Server::IsOpen(const Json& id) const {
  const auto has_id = [&](const Running& running) { return running.id == id; };
  return std::ranges::any_of(running_, has_id) ||
         std::ranges::any_of(asked_, [&](const auto& asked) { return has_id(asked.second); });
}

void Server::Take(const Lines::Line& line) {
  if (line.too_long) {
    Refuse(Json(), Fault::kInvalidRequest, fmt::format("a message has more than {} bytes", kMaxLineBytes));
    return;
  }
  const auto parsed = ParseMessage(line.text);
  if (const auto* refusal = std::get_if<Refusal>(&parsed))
    send_(Failure(*refusal));
  else
    Handle(std::get<Message>(parsed));
}

void Server::Handle(const Message& message) {
  if (message.method.empty()) {
    HandleAnswer(message);
  } else if (!message.id.is_null()) {
    HandleRequest(message);
  } else if (message.method == "notifications/cancelled") {
    Cancel(MemberOf(message.params, "requestId"));
  }
}

void Server::HandleRequest(const Message& message) {
  if (IsOpen(message.id))
    return Refuse(message.id, Fault::kInvalidRequest, "a request with this id is still open");
  if (message.method == "ping") return send_(Answer(message.id, Json::object()));
  if (message.method == "initialize") return send_(Answer(message.id, Initialize(message.params)));
  if (!initialized_) return Refuse(message.id, Fault::kInvalidRequest, "the first request is initialize");
  if (message.method == "tools/list") return send_(Answer(message.id, {{"tools", AllToolsJson()}}));
  if (message.method == "tools/call") return CallTool(message);
  if (message.method == "resources/list") return ListResources(message);
  if (message.method == "resources/templates/list")
    return send_(Answer(message.id, {{"resourceTemplates", ResourceTemplates()}}));
  if (message.method == "resources/read") return ReadResource(message);
  Refuse(message.id, Fault::kNoMethod, fmt::format("there is no method '{}'", HeadOf(message.method, 100)));
}

Json Server::Initialize(const Json& params) {
  initialized_ = true;
  // By a form; a client that shows pages only, says so.
  const Json& asks = MemberOf(MemberOf(params, "capabilities"), "elicitation");
  can_ask_ = asks.is_object() && (asks.empty() || asks.contains("form"));
  const std::string asked = TextIn(params, "protocolVersion");
  const auto* known = std::ranges::find(kProtocols, asked);
  return {{"protocolVersion", known == kProtocols.end() ? kProtocols.front() : *known},
          {"capabilities", {{"tools", Json::object()}, {"resources", Json::object()}}},
          {"serverInfo", {{"name", "fullbore"}, {"version", options_.version}}},
          {"instructions", kInstructions}};
}

// ---- calls ----

void Server::CallTool(const Message& message) {
  const std::string name = TextIn(message.params, "name");
  const Tool* tool = ToolNamed(name);
  if (tool == nullptr)
    return Refuse(message.id, Fault::kInvalidParams, fmt::format("there is no tool '{}'", HeadOf(name, 100)));
  const auto given = message.params.find("arguments");
  const Json arguments = given == message.params.end() || given->is_null() ? Json::object() : *given;
  if (!arguments.is_object())
    return Refuse(message.id, Fault::kInvalidParams, "\"arguments\" is not an object");
  auto call = CallOf(*tool, arguments, options_.place);
  if (!call) return send_(Answer(message.id, ErrorResult(call.error())));
  const Json& token = MemberOf(MemberOf(message.params, "_meta"), "progressToken");
  Running running{message.id, IsId(token) ? token : Json(), std::move(*call), "", nullptr};
  if (!running.call.starts.empty() && !options_.allow_run) return Ask(std::move(running));
  Start(std::move(running));
}

void Server::Ask(Running running) {
  if (!can_ask_ || asked_.size() >= kMostAsked) return Fail(running, NotAllowed(running.call));
  if (!HasRoomFor(running.call)) return Fail(running, Busy());
  const std::string id = fmt::format("fullbore-{}", ++requests_);
  const Json schema = {{"type", "object"},
                       {"properties", {{"allow", {{"type", "boolean"}, {"title", "Start it"}}}}},
                       {"required", {"allow"}}};
  send_(Request(id, "elicitation/create",
                {{"message", QuestionOf(running.call)}, {"requestedSchema", schema}}));
  asked_.emplace(id, std::move(running));
}

void Server::HandleAnswer(const Message& message) {
  const auto found = message.id.is_string() ? asked_.find(message.id.get<std::string>()) : asked_.end();
  if (found == asked_.end()) return;
  Running running = std::move(found->second);
  asked_.erase(found);
  const bool yes = TextIn(message.result, "action") == "accept" &&
                   MemberOf(MemberOf(message.result, "content"), "allow") == Json(true);
  if (yes)
    Start(std::move(running));
  else
    Fail(running, NotAllowed(running.call));
}

// Measurements at the same time would measure each other.
bool Server::HasRoomFor(const Call& call) const {
  const auto measures = [](const Running& each) { return Measures(each.call); };
  return running_.size() < kMostCalls && !(Measures(call) && std::ranges::any_of(running_, measures));
}

void Server::Start(Running running) {
  if (!HasRoomFor(running.call)) return Fail(running, Busy());
  auto job = starter_.Start(running.call);
  if (!job) return Fail(running, job.error());
  running.job = std::move(*job);
  running.begin_ns = running.told_ns = now_ns_;
  running_.push_back(std::move(running));
}

void Server::Cancel(const Json& id) {
  if (id.is_null()) return;
  for (Running& running : running_) {
    if (running.id != id) continue;
    running.id = running.progress_token = Json();
    running.job->Stop(now_ns_);
  }
  std::erase_if(asked_, [&](const auto& asked) { return asked.second.id == id; });
}

void Server::TellProgress(Running& running, int64_t now_ns) {
  if (running.progress_token.is_null() || now_ns - running.told_ns < kProgressNs) return;
  running.told_ns = now_ns;
  const double seconds = static_cast<double>(now_ns - running.begin_ns) / kNsPerSecond;
  Json params = {{"progressToken", running.progress_token}, {"progress", seconds}};
  if (running.call.limit_s) params["total"] = std::max(seconds, *running.call.limit_s);
  const std::string line = Printable(running.job->last_line(), true);
  params["message"] = line.empty() ? fmt::format("{:.0f} s", seconds) : HeadOf(line, 300);
  send_(Notification("notifications/progress", std::move(params)));
}

void Server::Tick(int64_t now_ns) {
  now_ns_ = now_ns;
  for (auto running = running_.begin(); running != running_.end();) {
    const auto ended = running->job->Tick(now_ns);
    if (ended) {
      if (!running->id.is_null()) send_(AnswerTo(*running, *ended));
      running = running_.erase(running);
      continue;
    }
    if (const auto limit_s = running->call.limit_s;
        limit_s && static_cast<double>(now_ns - running->begin_ns) > *limit_s * kNsPerSecond)
      running->job->Stop(now_ns);
    TellProgress(*running, now_ns);
    ++running;
  }
}

void Server::StopAll(int64_t now_ns) {
  asked_.clear();
  for (Running& running : running_) {
    running.id = running.progress_token = Json();
    running.job->Stop(now_ns);
  }
}

// ---- what they answer ----

void Server::Fail(const Running& running, const Error& error) {
  if (running.resource.empty())
    send_(Answer(running.id, ErrorResult(error)));
  else
    Refuse(running.id, Fault::kInternal, ToString(error));
}

Json Server::AnswerTo(const Running& running, const Ended& ended) {
  if (running.resource.empty()) return Answer(running.id, ToolResult(*running.call.tool, ended));
  const Json read = Json::parse(ended.json, nullptr, /*allow_exceptions=*/false);
  if (read.is_discarded()) return Failure({running.id, Fault::kInternal, TailOf(ended.errors, kTextRoom)});
  const std::string name = Keep(read, ended.json.size());
  return Answer(running.id, ContentsOf(running.resource, Bounded(read, name, kResourceRoom)));
}

Json Server::ToolResult(const Tool& tool, const Ended& ended) {
  const bool fails = tool.has_json ? ended.json.empty() : ended.status != 0;
  const Json result = Json::parse(ended.json, nullptr, /*allow_exceptions=*/false);
  if (fails || (tool.has_json && result.is_discarded())) {
    const std::string& said = ended.errors.empty() ? ended.output : ended.errors;
    return ErrorResult(said.empty() ? fmt::format("fullbore {} ended with status {}", tool.name, ended.status)
                                    : TailOf(said, kTextRoom));
  }
  const std::string& said = tool.says == Says::kErrors ? ended.errors : ended.output;
  if (!tool.has_json) return {{"content", Json::array({TextBlock(said)})}};
  const std::string name = Keep({{"said", said}, {"result", result}}, said.size() + ended.json.size());
  const Json bounded = Bounded(result, name + "/result", kResultRoom);
  const Json shown = {{"status", ended.status}, {"resource", name}, {"result", bounded}};
  const std::string text = tool.says == Says::kErrors ? TailOf(said, kTextRoom) : HeadOf(said, kTextRoom);
  return {{"content", Json::array({TextBlock(text), TextBlock(shown.dump())})}, {"structuredContent", shown}};
}

// The newest stays, whatever its size.
std::string Server::Keep(Json value, size_t bytes) {
  reports_.push_back({kReports + std::to_string(++reports_made_), std::move(value), bytes});
  size_t kept = 0, count = 0;
  for (auto report = reports_.rbegin(); report != reports_.rend() && count < kMostReports;
       ++report, ++count) {
    kept += report->bytes;
    if (count > 0 && kept > kMostReportBytes) break;
  }
  reports_.erase(reports_.begin(), reports_.end() - static_cast<std::ptrdiff_t>(count));
  return reports_.back().name;
}

// ---- resources ----

void Server::ListResources(const Message& message) {
  Json resources = Json::array({ResourceOf(kRuns, "runs", "All recorded runs")});
  for (const Report& report : reports_)
    resources.push_back(ResourceOf(report.name, report.name.substr(report.name.rfind('/') + 1),
                                   "What a call of this session answered"));
  send_(Answer(message.id, {{"resources", std::move(resources)}}));
}

void Server::ReadReport(const Message& message, const std::string& name, std::string_view path) {
  const auto found = std::ranges::find(reports_, name, &Report::name);
  const auto part = found == reports_.end() ? std::nullopt : At(found->value, path);
  const std::string uri = name + std::string(path);
  if (!part)
    return Refuse(message.id, Fault::kNoResource, fmt::format("there is no resource '{}'", HeadOf(uri, 200)));
  send_(Answer(message.id, ContentsOf(uri, Bounded(*part, uri, kResourceRoom))));
}

void Server::ReadResource(const Message& message) {
  const std::string uri = TextIn(message.params, "uri");
  if (uri.starts_with(kReports)) {
    const size_t end = uri.find('/', sizeof kReports - 1);
    return ReadReport(message, uri.substr(0, end),
                      end == std::string::npos ? "" : std::string_view(uri).substr(end));
  }
  auto call = CallOfRuns(uri, options_.place);
  if (!call) return Refuse(message.id, Fault::kNoResource, ToString(call.error()));
  Start({message.id, Json(), std::move(*call), uri, nullptr});
}

}  // namespace fullbore::mcp
