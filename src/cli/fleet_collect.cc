#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <thread>

#include "base/print.h"
#include "base/secrets.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "fleet/collect.h"

namespace fullbore::cli {

namespace {

struct Flags {
  fleet::CollectOptions options;
  std::string store = kFleetFile;
  ResultFile json{"--json", kJsonResult};
  bool force = false, quiet = false;
};

int Run(Flags& flags) {
  InputFiles inputs;
  inputs.Add(flags.store);
  if (auto judged = JudgeResults({&flags.json}, inputs, flags.force); !judged)
    return Fail(judged.error(), kExitUsage);
  if (flags.options.directories.empty()) flags.options.directories = {kDefaultRunsDirectory};
  auto store = fleet::Store::Open(flags.store);
  if (!store) return Fail(store.error(), StatusOf(store.error()));
  const bool shows = !flags.quiet && isatty(STDERR_FILENO) != 0;
  if (shows) {
    flags.options.progress = [](size_t done, size_t all) {
      if (done % 10 == 0 || done == all) Print(stderr, "\r\x1b[K  reading runs  {} of {}", done, all);
    };
  }
  const auto collected = fleet::Collect(flags.options, *store);
  if (shows) Print(stderr, "\r\x1b[K");
  if (!collected) return Fail(collected.error(), StatusOf(collected.error()));
  for (const std::string& text : collected->unread)
    Fail({ErrorCode::kInvalidArgument, "left out: " + text, ""}, 0);
  if (collected->all_again && !flags.quiet) {
    Print(stderr,
          "fullbore: '{}' does not let this role read what was collected before, so all runs were read\n",
          MaskUrl(flags.store));
  }
  if (flags.json.wanted()) {
    const nlohmann::ordered_json json = {{"schema", "fullbore.fleet_collect/1"},
                                         {"database", MaskUrl(flags.store)},
                                         {"runs", collected->runs},
                                         {"changed", collected->changed},
                                         {"unread", collected->unread}};
    if (auto written = WriteJson(flags.json, json); !written) return Fail(written.error(), kExitFailure);
  }
  if (!AnyToStandardOutput({&flags.json}) && !flags.quiet) {
    Print(stdout, "{} run{} in all, {} new or changed, in '{}'\n", collected->runs,
          collected->runs == 1 ? "" : "s", collected->changed, MaskUrl(flags.store));
  }
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  flags->options.threads = std::max(1U, std::thread::hardware_concurrency());
  app.add_option(
      "DIR", flags->options.directories,
      fmt::format("Directories that hold runs, at any depth (default: {})", kDefaultRunsDirectory));
  app.add_option("--to", flags->store,
                 "The database that they go into, made if missing: a file, or postgresql://HOST/NAME")
      ->type_name("DATABASE")
      ->default_str(kFleetFile);
  app.add_option("--threads", flags->options.threads,
                 "Runs that are read at once (default: the machine's cores)")
      ->check(CLI::Range(1, 256));
  AddResult(app, flags->json, "Write what was read to this file");
  AddForce(app, flags->force);
  app.add_flag("--quiet,-q", flags->quiet, "Say nothing but what is wrong");
  return [flags] { return Run(*flags); };
}

}  // namespace

const Subcommand kFleetCollect = {"collect",
                                  "Read the runs below directories into a database; again, only what changed",
                                  "fullbore fleet collect /shared/runs --to fleet.db", Define};

}  // namespace fullbore::cli
