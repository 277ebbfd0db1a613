#include "mcp/tool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/command_line.h"
#include "base/nearest.h"
#include "base/text.h"
#include "mcp/bounded.h"

namespace fullbore::mcp {

namespace {

constexpr size_t kMaxTextBytes = 16 << 10;
constexpr size_t kMaxTexts = 64;
constexpr char kNewest[] = "last";

constexpr Parameter kRunsParameter = {"runs", Kind::kRuns, "-o", "The directory where runs are kept"};
constexpr Parameter kSetting = {
    "settings", Kind::kTexts, "--set",
    "NAME=VALUE, a setting by its name in PyTorch that is made in the script from outside: num_workers=4"};
constexpr Parameter kMetric = {
    "metric", Kind::kText, "--metric",
    "A regular expression for what the program prints, whose first group is its throughput"};
constexpr Parameter kMost = {"most", Kind::kText, "--most", "The longest that a trial is measured: 60s"};
constexpr Parameter kBudget = {"budget", Kind::kText, "--budget", "The time that all trials may take: 10m"};
constexpr Parameter kLog = {"log", Kind::kFile, "--log", "The file that `metric` is read from"};
constexpr Parameter kCommandToRun = {"command", Kind::kCommand, "",
                                     "The training command, as in a shell: python train.py", true};

Error Wrong(const Parameter& parameter, const std::string& what) {
  return {ErrorCode::kInvalidArgument, fmt::format("argument '{}' {}", parameter.name, what), parameter.says};
}

Result<std::string> TextOf(const Parameter& parameter, const Json& value) {
  if (!value.is_string()) return Wrong(parameter, "is not a text");
  std::string text = value.get<std::string>();
  if (text.empty()) return Wrong(parameter, "is empty");
  if (text.size() > kMaxTextBytes)
    return Wrong(parameter, fmt::format("is longer than {} bytes", kMaxTextBytes));
  if (text.find('\0') != std::string::npos) return Wrong(parameter, "holds a zero byte");
  return text;
}

Result<std::vector<std::string>> TextsOf(const Parameter& parameter, const Json& value) {
  std::vector<std::string> texts;
  if (!value.is_array() || value.size() > kMaxTexts)
    return Wrong(parameter, fmt::format("is not a list of at most {} texts", kMaxTexts));
  for (const Json& each : value) {
    auto text = TextOf(parameter, each);
    if (!text) return text.error();
    texts.push_back(std::move(*text));
  }
  return texts;
}

// A file where there is one, or else a run: then its file.
Result<std::string> RecordingNamed(const std::string& name, const std::string& runs, const Place& place) {
  std::error_code unknown;
  const bool is_run =
      name == kNewest || (name.find('/') == std::string::npos && !std::filesystem::exists(name, unknown));
  if (!is_run) return place.paths.Resolve(name);
  auto path = place.find_run(runs, name == kNewest ? "" : name);
  return path ? place.paths.Resolve(*path) : path;
}

class Builder {
 public:
  Builder(const Tool& tool, const Json& arguments, const Place& place)
      : tool_(tool), arguments_(arguments), place_(place) {}

  Result<Call> Build();

 private:
  Result<void> CheckNames() const;
  Result<void> FindRuns();
  Result<void> Add(const Parameter& parameter, const Json& value);
  Result<void> AddText(const Parameter& parameter, const std::string& text);
  Result<void> AddCommand(const Parameter& parameter, const std::string& text);
  Result<void> AddProcess(const Parameter& parameter, const Json& value);
  void AddOption(const Parameter& parameter, const std::string& value);

  const Tool& tool_;
  const Json& arguments_;
  const Place& place_;
  Call call_;
  std::string runs_;
};

Result<void> Builder::CheckNames() const {
  std::vector<std::string> names;
  for (const Parameter& parameter : tool_.parameters) names.emplace_back(parameter.name);
  for (const auto& [name, value] : arguments_.items()) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const auto meant = Nearest(name, names);
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} takes no argument '{}'", tool_.name, HeadOf(name, 100)),
                 meant ? fmt::format("did you mean '{}'?", *meant)
                       : fmt::format("its arguments are: {}", fmt::join(names, ", "))};
  }
  for (const Parameter& parameter : tool_.parameters) {
    if (parameter.required && !arguments_.contains(parameter.name)) return Wrong(parameter, "is missing");
  }
  return {};
}

// Told in any case: what is kept there by default may lie elsewhere, through a link.
Result<void> Builder::FindRuns() {
  const auto takes_it = std::ranges::find(tool_.parameters, Kind::kRuns, &Parameter::kind);
  if (takes_it == tool_.parameters.end()) return {};
  runs_ = place_.runs;
  if (const auto given = arguments_.find(takes_it->name); given != arguments_.end()) {
    auto text = TextOf(*takes_it, *given);
    if (!text) return text.error();
    runs_ = *text;
  }
  auto resolved = place_.paths.Resolve(runs_);
  if (!resolved) return resolved.error();
  runs_ = std::move(*resolved);
  call_.words.insert(call_.words.end(), {takes_it->flag, runs_});
  return {};
}

// With "=": no text of a client's is ever taken for an option.
void Builder::AddOption(const Parameter& parameter, const std::string& value) {
  call_.words.push_back(*parameter.flag == '\0' ? value : fmt::format("{}={}", parameter.flag, value));
}

Result<void> Builder::AddCommand(const Parameter& parameter, const std::string& text) {
  auto words = WordsOfCommand(text);
  if (!words) return words.error();
  call_.starts.push_back(text);
  if (parameter.kind == Kind::kCommandText) return AddOption(parameter, text), Result<void>();
  call_.behind = std::move(*words);
  call_.behind.insert(call_.behind.begin(), "--");
  return {};
}

Result<void> Builder::AddProcess(const Parameter& parameter, const Json& value) {
  if (!value.is_number_integer() || value.get<int64_t>() <= 0)
    return Wrong(parameter, "is not the number of a process");
  const std::string number = std::to_string(value.get<int64_t>());
  call_.starts.push_back("py-spy, which reads process " + number);
  AddOption(parameter, number);
  return {};
}

Result<void> Builder::AddText(const Parameter& parameter, const std::string& text) {
  switch (parameter.kind) {
    case Kind::kCommand:
    case Kind::kCommandText:
      return AddCommand(parameter, text);
    case Kind::kRecording:
    case Kind::kRecordings:
    case Kind::kFile: {
      const auto path =
          parameter.kind == Kind::kFile ? place_.paths.Resolve(text) : RecordingNamed(text, runs_, place_);
      if (!path) return path.error();
      return AddOption(parameter, *path), Result<void>();
    }
    case Kind::kLimit:
      call_.limit_s = ParseSeconds(text);
      if (!call_.limit_s || !(*call_.limit_s > 0) || !std::isfinite(*call_.limit_s))
        return Wrong(parameter, "is not a time, as 90s or 10m");
      return {};
    default:
      if (*parameter.flag == '\0' && text[0] == '-') return Wrong(parameter, "begins with '-'");
      return AddOption(parameter, text), Result<void>();
  }
}

Result<void> Builder::Add(const Parameter& parameter, const Json& value) {
  if (parameter.kind == Kind::kRuns) return {};
  if (parameter.kind == Kind::kProcess) return AddProcess(parameter, value);
  if (parameter.kind == Kind::kSwitch) {
    if (!value.is_boolean()) return Wrong(parameter, "is neither true nor false");
    if (value.get<bool>()) call_.words.emplace_back(parameter.flag);
    return {};
  }
  const bool is_list = parameter.kind == Kind::kTexts || parameter.kind == Kind::kRecordings;
  const auto texts = TextsOf(parameter, is_list ? value : Json::array({value}));
  if (!texts) return texts.error();
  for (const std::string& text : *texts) {
    if (auto added = AddText(parameter, text); !added) return added;
  }
  return {};
}

Result<Call> Builder::Build() {
  if (auto checked = CheckNames(); !checked) return checked.error();
  call_.tool = &tool_;
  call_.words.assign(tool_.words.begin(), tool_.words.end());
  if (auto found = FindRuns(); !found) return found.error();
  for (const Parameter& parameter : tool_.parameters) {
    const auto value = arguments_.find(parameter.name);
    if (value == arguments_.end()) continue;
    if (auto added = Add(parameter, *value); !added) return added.error();
  }
  return std::move(call_);
}

Json TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kTexts:
    case Kind::kRecordings:
      return {{"type", "array"}, {"items", {{"type", "string"}}}, {"maxItems", kMaxTexts}};
    case Kind::kSwitch:
      return {{"type", "boolean"}};
    case Kind::kProcess:
      return {{"type", "integer"}, {"minimum", 1}};
    default:
      return {{"type", "string"}};
  }
}

}  // namespace

const std::vector<Tool>& AllTools() {
  static const std::vector<Tool> all = {
      {"diagnose",
       {"explain"},
       "Say where the time of a recorded run, of traces of other profilers or of a running process went: findings with "
       "evidence, the line, the advice and its predicted gain, and what could not be judged. Ask this first.",
       Says::kOutput,
       true,
       {{"what", Kind::kRecordings, "",
         "A run by its id, or \"last\"; or files: traces of the ranks of one run, a memory snapshot (default: the "
         "newest run)"},
        {"pid", Kind::kProcess, "--pid", "A training that runs already, looked at from outside, with py-spy"},
        {"seconds", Kind::kText, "--for", "With pid: how long to look: 30s"},
        {"step_time", Kind::kText, "--step-time", "Traces: what a step takes without the profiler: 120ms"},
        {"sections", Kind::kTexts, "--section",
         "Traces: these tables instead of the verdict: kernels, operators"},
        kRunsParameter}},
      {"what_if",
       {"explain"},
       "Predict what changes to recorded steps of traces would gain, before anybody makes them; or what another batch would "
       "take of the device's memory: of a run (batch=64, seq=4096) or of a memory snapshot (batch=2x).",
       Says::kOutput,
       true,
       {{"what", Kind::kRecordings, "", "Traces of the ranks of one run, a run, or a memory snapshot", true},
        {"changes", Kind::kTexts, "--what-if",
         "The changes, one after the other: no-sync, graphs, workers=4; `fullbore explain --help` lists them",
         true},
        kRunsParameter}},
      {"run",
       {"run"},
       "Run a training command as it is, record it, and diagnose it when it ends.",
       Says::kErrors,
       true,
       {kCommandToRun,
        {"limit", Kind::kLimit, "",
         "After so long the command is asked to end, and is judged by what was seen: 2m"},
        {"name", Kind::kText, "--name", "Part of the run's id"},
        {"tags", Kind::kTexts, "--tag", "KEY=VALUE, to find the run by"},
        kRunsParameter}},
      {"measure",
       {"measure"},
       "Measure a training command's throughput with given settings, in a process of its own that changes no files.",
       Says::kErrors,
       true,
       {kCommandToRun,
        kSetting,
        kMetric,
        kLog,
        kMost,
        {"precision", Kind::kText, "--precision", "Half of the interval at which a trial ends: 2%"},
        kRunsParameter}},
      {"compare",
       {"compare"},
       "Prove a gain, or refute it: two commands in turns (baseline and candidate; or command with at, a commit; or "
       "command with settings), until it is told which is faster, with an interval, and the losses of their first steps "
       "beside each other. Or say what differs between two recorded runs or traces (before and after). Claim no gain "
       "without it.",
       Says::kOutput,
       true,
       {{"before", Kind::kRecording, "", "A recorded run or trace"},
        {"after", Kind::kRecording, "", "Another one"},
        {"baseline", Kind::kCommandText, "--baseline", "A command: python train_before.py"},
        {"candidate", Kind::kCommandText, "--candidate", "The command that is to be faster: python train.py"},
        {"command", Kind::kCommand, "", "With at or settings: the command"},
        {"at", Kind::kTexts, "--at", "A commit, against the working tree as it is; or two commits"},
        kSetting,
        kBudget,
        kMetric,
        kMost,
        {"whole_runs", Kind::kSwitch, "--whole-runs",
         "One run after the other, for programs that must not stand still"},
        {"fail_if", Kind::kTexts, "--fail-if",
         "A condition to be told: 'slower 3%', 'not-faster 10%', not-proven"},
        kRunsParameter}},
      {"tune",
       {"tune"},
       "Find the settings that make a training command fast, by measuring them, and prove the gain. Takes minutes.",
       Says::kOutput,
       true,
       {kCommandToRun,
        {"knobs", Kind::kText, "--knobs",
         "What may be turned: workers, batch, threads, loader, precision, all"},
        {"settings", Kind::kTexts, "--set", "NAME=VALUES to choose from: num_workers=0,2,4"},
        {"objective", Kind::kText, "--objective", "throughput, cost or memory"},
        kBudget,
        kMetric,
        kMost,
        kRunsParameter}},
      {"explain_finding",
       {"help"},
       "The page about a finding: what it is, how to confirm it, how to fix it.",
       Says::kOutput,
       false,
       {{"id", Kind::kText, "", "The id of a finding, as a report names it: input-bound", true}}},
      {"doctor",
       {"doctor"},
       "Say what can be measured on this machine, and what to do about the rest.",
       Says::kOutput,
       true,
       {}},
  };
  return all;
}

const Tool* ToolNamed(const std::string& name) {
  const auto found =
      std::ranges::find(AllTools(), name, [](const Tool& tool) { return std::string(tool.name); });
  return found == AllTools().end() ? nullptr : &*found;
}

Json SchemaOf(const Tool& tool) {
  Json schema = {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  for (const Parameter& parameter : tool.parameters) {
    Json one = TypeOf(parameter.kind);
    one["description"] = parameter.says;
    schema["properties"][parameter.name] = std::move(one);
    if (parameter.required) schema["required"].push_back(parameter.name);
  }
  return schema;
}

Result<Call> CallOf(const Tool& tool, const Json& arguments, const Place& place) {
  return Builder(tool, arguments, place).Build();
}

}  // namespace fullbore::mcp
