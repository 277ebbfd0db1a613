#include "watch/track/tracker.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/command_line.h"
#include "base/secrets.h"
#include "record/run_reader.h"
#include "watch/track/mlflow.h"
#include "watch/track/otlp.h"
#include "watch/track/tensorboard.h"
#include "watch/track/wandb.h"

namespace fullbore::watch {

namespace {

using Kind = TrackerName::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 4> kKinds = {{{"tensorboard", Kind::kTensorBoard},
                                                                      {"mlflow", Kind::kMlflow},
                                                                      {"wandb", Kind::kWandb},
                                                                      {"otlp", Kind::kOtlp}}};

std::string_view KindIn(std::string_view text) { return text.substr(0, text.find(':')); }

bool IsUrl(const std::string& text) { return text.starts_with("http://") || text.starts_with("https://"); }

// Where nothing is named, the environment of MLflow's own client says which server.
Result<std::string> MlflowPlace(const std::string& place) {
  const std::string uri = place.empty() ? Variable("MLFLOW_TRACKING_URI") : place;
  if (uri.empty() || IsUrl(uri)) return uri;  // perhaps the script says it
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("mlflow: '{}' is not a server, and only a server's REST API is spoken", MaskUrl(uri)),
      "`mlflow server` makes one of it: --log mlflow:http://127.0.0.1:5000"};
}

Result<std::string> OtlpPlace(const std::string& place) {
  std::string url = place.empty() ? Variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") : place;
  if (url.empty()) url = Variable("OTEL_EXPORTER_OTLP_ENDPOINT");
  if (IsUrl(url)) return url;
  return Error{
      ErrorCode::kInvalidArgument,
      url.empty() ? "otlp: no collector is named" : fmt::format("otlp: '{}' is no URL", MaskUrl(url)),
      "with its port for HTTP: otlp:http://127.0.0.1:4318"};
}

Result<std::string> TensorBoardPlace(const std::string& place) {
  if (!place.empty()) return place;
  return Error{ErrorCode::kInvalidArgument, "tensorboard: no directory is named",
               "the one that TensorBoard shows: tensorboard:runs"};
}

// A directory is named so, and a query: what is in a file that somebody sent could lead elsewhere.
std::string Plain(std::string id) {
  for (char& each : id) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(each)) || each == '-' || each == '_' || each == '.';
    if (!plain) each = '_';
  }
  if (id.empty() || id.front() == '.') id.insert(0, "run");
  return id;
}

// Of a run on several machines each sends what it saw itself, under a name of its own.
std::string IdOf(const record::Recording& recording) {
  const std::filesystem::path path = recording.path;
  const bool is_node = path.parent_path().extension() == record::kRunSuffix;
  return Plain(is_node ? path.parent_path().stem().string() + "-" + path.stem().string() : recording.id);
}

}  // namespace

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

TrackedRun TrackedRun::Of(const record::Recording& recording) {
  TrackedRun run;
  run.id = IdOf(recording);
  run.tags = recording.tags;
  if (const auto host = recording.machine.find("hostname"); host != recording.machine.end())
    run.host = host->second;
  if (recording.stages.empty()) return run;
  const record::Stage& last = recording.stages.back();
  run.stage = last.name;
  run.words = last.command;
  run.command = ShellLine(last.command);
  run.directory = last.directory;
  run.wall_begin_ns = recording.stages.front().begin_ns + recording.wall_offset_ns;
  run.wall_end_ns = last.end_ns + recording.wall_offset_ns;
  if (!last.ranks.empty()) run.facts = last.ranks.front().facts;
  return run;
}

bool NamesATracker(const std::string& text) {
  for (const auto& [name, kind] : kKinds) {
    if (KindIn(text) == name) return true;
  }
  return false;
}

Result<TrackerName> TrackerNamed(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string given = colon == std::string::npos ? "" : text.substr(colon + 1);
  const auto with = [](Kind kind, Result<std::string> place) -> Result<TrackerName> {
    if (!place) return place.error();
    return TrackerName{kind, *place};
  };
  const std::string_view kind = KindIn(text);
  if (kind == "tensorboard") return with(Kind::kTensorBoard, TensorBoardPlace(given));
  if (kind == "mlflow") return with(Kind::kMlflow, MlflowPlace(given));
  if (kind == "otlp") return with(Kind::kOtlp, OtlpPlace(given));
  if (kind == "wandb") return TrackerName{Kind::kWandb, given};
  return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is not a tracker that is known", MaskUrl(text)),
               "tensorboard:DIR, mlflow[:URI], wandb[:PROJECT] or otlp:URL"};
}

std::unique_ptr<Tracker> MakeTracker(const TrackerName& name) {
  switch (name.kind) {
    case Kind::kTensorBoard:
      return std::make_unique<TensorBoard>(name.place);
    case Kind::kMlflow:
      return std::make_unique<Mlflow>(name.place);
    case Kind::kWandb:
      return std::make_unique<Wandb>(name.place);
    case Kind::kOtlp:
      return std::make_unique<Otlp>(name.place);
  }
  return nullptr;
}

}  // namespace fullbore::watch
