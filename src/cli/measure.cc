// fullbore measure: one setting, one fresh process, one line of JSON. The flags are described below, in Define.
#include "tune/trial/measure.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/print.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/hook_directory.h"
#include "cli/next_step.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "cli/trials.h"

namespace fullbore::cli {

namespace {

struct Flags {
  TrialFlags trial;
  std::vector<std::string> settings;
  ResultFile json{"--json", kJsonResult};
  bool force = false;
};

std::string InWords(const tune::Trial& trial) {
  std::string text = fmt::format("{}: ", tune::ToText(trial.settings));
  if (!trial.rate) return text + fmt::format("{}: {}", tune::Name(trial.outcome), trial.why);
  text += fmt::format("{} {} ({} to {})", FormatCount(trial.rate->mean), trial.unit,
                      FormatCount(trial.rate->low), FormatCount(trial.rate->high));
  if (trial.peak_memory_bytes)
    text += fmt::format(", at most {}", FormatBytes(static_cast<double>(*trial.peak_memory_bytes)));
  text += fmt::format(", in {}", FormatDuration(static_cast<int64_t>(trial.seconds * 1e9)));
  return trial.why.empty() ? text : text + ", " + trial.why;
}

int PrintTrial(const tune::Trial& trial, const Flags& flags) {
  // Other people's programs read it: one line, in any case.
  const std::string line = PrintableJson(
      WithNextStep(tune::ToJson(trial)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  ResultFile json = flags.json;
  if (!json.wanted()) json.path = "-";
  if (!flags.json.IsStandardOutput()) Print(stderr, "fullbore: {}\n", MaskUrls(InWords(trial)));
  if (auto written = json.Write(line + "\n"); !written) return Fail(written.error(), kExitFailure);
  return 0;
}

int MeasureIt(Flags& flags, const Invocation& invocation) {
  auto options = OptionsOf("measure", flags.trial, invocation);
  if (!options) return Fail(options.error(), kExitUsage);
  if (auto judged =
          JudgeResults({&flags.json}, InputsOf(flags.trial, invocation), flags.force, flags.trial.directory);
      !judged)
    return Fail(judged.error(), kExitUsage);
  tune::Settings settings;
  for (const std::string& text : flags.settings) {
    auto setting = tune::ParseSetting(text);
    if (!setting) return Fail(setting.error(), kExitUsage);
    if (auto legal = CheckSetting(options->command, setting->first, setting->second); !legal)
      return Fail(legal.error(), kExitUsage);
    settings[setting->first] = setting->second;
  }
  if (auto safe = Protect(flags.trial, *options); !safe) return Fail(safe.error(), kExitFailure);
  const auto measured = tune::MeasureAt(PlaceOf(flags.trial), *options, settings);
  if (!measured) return Fail(measured.error(), StatusOf(measured.error()));
  if (measured->interrupted_by) return 128 + *measured->interrupted_by;
  return PrintTrial(measured->trial, flags);
}

Handler Define(CLI::App& app, const Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--set", flags->settings,
                 "A setting by its name in PyTorch, for instance num_workers=4; it takes the place of\n"
                 "{num_workers} in the command, or else is made in the script from outside")
      ->type_name("NAME=VALUE");
  AddTrialFlags(app, flags->trial);
  AddResult(app, flags->json,
            "Write the line of JSON to this file, and to standard output nothing but that\n"
            "(default: there, with words beside it on standard error)");
  AddForce(app, flags->force);
  return [flags, &invocation] { return MeasureIt(*flags, invocation); };
}

}  // namespace

const Subcommand kMeasure = {
    "measure", "Measure a training command's throughput with given settings, in a process of its own",
    "fullbore measure --set num_workers=4 -- python train.py\n"
    "  fullbore measure --set batch_size=64 --metric '([0-9.]+) img/s' -- ./train --batch {batch_size}",
    Define};

}  // namespace fullbore::cli
