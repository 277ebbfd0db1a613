#include "measure/collect/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/print.h"
#include "base/secrets.h"
#include "base/temporary_directory.h"
#include "measure/collect/leftovers.h"
#include "measure/collect/run_name.h"

namespace fullbore::collect {

namespace fs = std::filesystem;

namespace {

void Say(const std::string& text) { Print(stderr, "fullbore: {}\n", text); }

bool IsPlainName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

Result<RunPlace> PlaceOf(const RunOptions& options, const std::string& directory, const std::string& name) {
  if (!options.run_id.empty()) return PlaceForRun(directory, options.run_id, options.node);
  return PlaceForNewRun(directory, options.starter ? name : NameWithTime(name));
}

std::vector<std::string> KeptCommand(const RunOptions& options) {
  if (!options.keep_command_lines) return {};
  return MaskSecrets(options.command);
}

ChannelPlace ChannelsOf(const std::string& directory, const std::string& run_id) {
  if (auto channels = MakeChannelPlace(directory, run_id))
    return *channels;
  else
    Say(channels.error().text + ": training steps are not recorded");
  return {};
}

// All of them in that directory, or none.
Result<RunFiles> MakeIn(const RunOptions& options, const std::string& wanted_directory) {
  const auto directory = MakeRunsDirectory(wanted_directory);
  if (!directory) return directory.error();
  const std::string name = options.name.empty() ? NameOf(options.command) : options.name;
  auto place = PlaceOf(options, *directory, name);
  if (!place) return place.error();
  const int64_t begin_ns = MonotonicNs();
  const std::string stage = options.stage.empty() ? name : options.stage;
  std::error_code unknown;
  auto writer = record::RunWriter::Open(
      place->path,
      {place->run_id, stage, KeptCommand(options), fs::current_path(unknown).string(), options.tags},
      begin_ns, WallNs());
  if (!writer) {
    if (place->is_new_file) RemoveRunFile(place->path);
    return writer.error();
  }
  ChannelPlace channels = ChannelsOf(*directory, place->run_id);
  RemoveLeftoverPlaces(*directory);
  return RunFiles{std::move(*writer), *place, std::move(channels), begin_ns};
}

}  // namespace

Result<void> CheckNames(const RunOptions& options) {
  for (const auto& [what, name] : {std::pair<const char*, const std::string&>{"--name", options.name},
                                   {"--run", options.run_id},
                                   {"--node", options.node},
                                   {"--stage", options.stage}}) {
    if (!name.empty() && !IsPlainName(name)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} '{}' cannot be used as a file name", what, name),
                   "use letters, digits, '-', '_' and '.'"};
    }
  }
  return {};
}

std::optional<RunFiles> RunFiles::Make(const RunOptions& options) try {
  auto files = MakeIn(options, options.directory);
  if (files) return std::move(*files);
  if (options.starter) {
    options.starter->Refuse(files.error().text);
    return std::nullopt;
  }
  Say(files.error().text);
  auto instead = TemporaryDirectory::Make();
  files = instead ? MakeIn(options, instead->path()) : instead.error();
  if (!files) {
    Say(files.error().text);
    if (options.trial) return std::nullopt;
    Say("the command runs, but nothing is recorded; choose a directory for runs with -o DIR");
    return std::nullopt;
  }
  Say(fmt::format("the command runs; the run is recorded in '{}' instead; choose a directory with -o DIR",
                  instead->Keep()));
  return std::move(*files);
} catch (const std::exception& error) {  // a bug, or no memory
  Say(fmt::format("{}: the command runs, but nothing is recorded", error.what()));
  return std::nullopt;
}

void RunFiles::Discard() && {
  Remove(channels);
  const bool is_all = place.is_new_file && writer.IsOnlyStage();
  (void)writer.Close(MonotonicNs(), record::StageState::kEnded, std::nullopt, false);
  if (is_all) RemoveRunFile(place.path);
}

}  // namespace fullbore::collect
