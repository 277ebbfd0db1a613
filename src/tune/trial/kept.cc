#include "tune/trial/kept.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/trusted_path.h"

namespace fullbore::tune {

namespace {

std::string Dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

Kept::Kept(const std::string& runs_directory, const std::string& working_directory,
           const std::vector<std::string>& command) {
  std::string all = working_directory;
  for (const std::string& word : command) all += '\0' + word;
  path_ = (std::filesystem::path(runs_directory) /
           fmt::format("tune-{:016x}.jsonl", std::hash<std::string>()(all)))
              .string();
  text_ = Dump({{"schema", "fullbore.tune-trials/1"}, {"command", MaskSecrets(command)}});
}

Result<void> Kept::Load() {
  const auto file = OpenRegularFile(path_);
  const auto text = file ? ReadToEnd(file->get(), path_) : file.error();
  if (!text) {
    Error error = text.error();
    error.text = "--resume: no trials of this command are kept here: " + error.text;
    error.hint = "leave out --resume to start anew";
    return error;
  }
  for (const std::string_view line : Split(*text, '\n')) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    if (auto trial = TrialFrom(json)) {
      text_ += std::string(line) + "\n";
      loaded_.push_back(std::move(*trial));
    }
  }
  return {};
}

std::vector<Trial>::const_iterator Kept::Next(const Settings& settings, bool proves) const {
  return std::ranges::find_if(
      loaded_, [&](const Trial& trial) { return trial.settings == settings && trial.proves == proves; });
}

bool Kept::Holds(const Settings& settings, bool proves) const {
  return Next(settings, proves) != loaded_.end();
}

std::optional<Trial> Kept::Take(const Settings& settings, bool proves) {
  const auto at = Next(settings, proves);
  if (at == loaded_.end()) return std::nullopt;
  Trial trial = *at;
  loaded_.erase(at);
  return trial;
}

Result<void> Kept::Add(const Trial& trial) { return Add(std::vector<Trial>{trial}); }

Result<void> Kept::Add(const std::vector<Trial>& trials) {
  for (const Trial& trial : trials) text_ += Dump(ToJson(trial));
  if (auto checked = TrustedPath(std::filesystem::path(path_).parent_path(), Others::kChosen); !checked)
    return Error{checked.error().code, "trials are not kept for --resume: " + checked.error().text, ""};
  return WriteFileAtOnce(path_, text_, kPrivateFile);
}

}  // namespace fullbore::tune
