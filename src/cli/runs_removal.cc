#include "cli/runs_removal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <iostream>

#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "measure/collect/run_name.h"
#include "record/run_reader.h"
#include "watch/removal.h"

namespace fullbore::cli {

namespace {

using Runs = std::vector<serve::NamedRun>;

int64_t EndOf(const watch::KnownRun& run) { return run.summary.wall_begin_ns + serve::DurationNs(run); }

// A name of `run --name` or `--run`: neither what the command alone is called, nor what Slurm makes of a job's number.
bool WasNamed(const watch::KnownRun& run) {
  return NameInId(run.name) != collect::NameOf(run.summary.stages.front().command) &&
         !run.name.starts_with("slurm-");
}

bool IsNamed(const serve::NamedRun& run, const std::string& word) {
  const std::string name = NameInId(run.first);
  return name == word || (word.starts_with(name) && run.first.ends_with("-" + word));
}

// Whether the word means this run, and still does when it is said again: an id, a file, `last`, or a name that no other
// run has. What an id merely begins with may have been that of a run that is gone already.
Result<void> JudgeWord(const std::string& word, const std::string& found, const Runs& runs) {
  const bool is_file = std::filesystem::path(word).extension() == record::kRunSuffix;
  if (word == found || word == kNewestRun || is_file) return {};
  const auto count = std::ranges::count_if(runs, [&](const auto& run) { return IsNamed(run, word); });
  if (count == 1) return {};
  return Error{ErrorCode::kInvalidArgument,
               count == 0 ? fmt::format("--delete '{}': that is not the whole id of {}", word, found)
                          : fmt::format("--delete '{}': {} runs are named so", word, count),
               "`fullbore runs` lists the ids"};
}

// The runs that --delete names. A file elsewhere is none of this directory, whatever its name leads to.
Result<Runs> ThoseNamed(const RemovalFlags& flags, const std::string& directory, const Runs& runs) {
  Runs named;
  for (const std::string& word : flags.names) {
    const auto path = FindRun(directory, word);
    if (!path) return path.error();
    const std::string name = std::filesystem::path(*path).stem().string();
    const auto known = std::ranges::find(runs, name, &serve::NamedRun::first);
    std::error_code ignored;
    if (known == runs.end() || !std::filesystem::equivalent(*path, known->second->summary.path, ignored))
      return Error{ErrorCode::kNotFound, fmt::format("'{}' is no run of '{}'", word, directory),
                   "-o DIR names the directory that it is in"};
    if (auto meant = JudgeWord(word, name, runs); !meant) return meant.error();
    if (std::ranges::find(named, *known) == named.end()) named.push_back(*known);
  }
  return named;
}

double BytesOf(const Runs& runs) {
  double bytes = 0;
  for (const auto& [name, run] : runs) bytes += static_cast<double>(run->summary.bytes);
  return bytes;
}

std::string CountOf(const Runs& runs) {
  return fmt::format("{} {}, {}", runs.size(), runs.size() == 1 ? "run" : "runs", FormatBytes(BytesOf(runs)));
}

void Say(const Runs& going) {
  for (const auto& [name, run] : going) {
    const std::string note = run->summary.note.empty() ? "" : "  # " + run->summary.note;
    Print(stdout, "  {}  ended {}  {}{}\n", name, FormatUtc(EndOf(*run)),
          FormatBytes(static_cast<double>(run->summary.bytes)), note);
  }
}

void SaySpared(const Runs& runs) {
  size_t spared = 0;
  for (const auto& [name, run] : runs) spared += WhySpared(*run).empty() ? 0 : 1;
  if (spared > 0)
    Print(stdout, "spared, being recorded, pinned, named or with a note: {} of {}\n", spared, runs.size());
}

// Only "y" and "yes" are a yes.
bool Agrees(const Runs& going) {
  Print(stderr, "Delete {}? [y/N] ", CountOf(going));
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

int Remove(const std::string& directory, const Runs& going) {
  int status = 0;
  size_t removed = 0;
  int64_t freed = 0;
  for (const auto& [name, run] : going) {
    const auto done = watch::RemoveRun(directory, *run);
    if (!done) status = Fail(done.error(), kExitFailure);
    if (done) ++removed, freed += *done;
  }
  Print(stdout, "deleted: {} of {}, {} free\n", removed, going.size(),
        FormatBytes(static_cast<double>(freed)));
  return status;
}

}  // namespace

void AddRemovalFlags(CLI::App& app, RemovalFlags& flags) {
  auto* names =
      app.add_option("--delete", flags.names, "Delete these runs, after a question")->type_name("RUN");
  auto* prune =
      app.add_flag("--prune", flags.prune,
                   "Delete the runs beyond the limits below, of those that --tag and --filter leave;\n"
                   "never one that is being recorded, is pinned, has a note, or was named by you");
  names->excludes(prune);
  app.add_option("--older-than", flags.older_than, "--prune: runs that ended longer ago, as 30d")
      ->type_name("TIME")
      ->needs(prune);
  app.add_option("--keep-newest", flags.keep_newest, "--prune: all but the newest N")
      ->type_name("N")
      ->needs(prune);
  app.add_option("--at-most", flags.at_most_bytes, "--prune: the oldest, until all fit into this, as 10GB")
      ->transform(CLI::AsSizeValue(true))
      ->type_name("SIZE")
      ->needs(prune);
  app.add_flag("--yes", flags.yes,
               "Delete without the question; without a terminal, nothing is deleted otherwise");
}

Result<void> JudgeRemoval(const RemovalFlags& flags) {
  if (flags.prune && flags.older_than.empty() && !flags.keep_newest && !flags.at_most_bytes)
    return Error{ErrorCode::kInvalidArgument, "--prune has no limit",
                 "--older-than 30d, --keep-newest 100 or --at-most 10GB"};
  if (!flags.older_than.empty() && std::isdigit(static_cast<unsigned char>(flags.older_than.back())) != 0)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--older-than '{}' has no unit: seconds, hours or days", flags.older_than),
                 "for instance 30d or 12h"};
  const auto seconds = flags.older_than.empty() ? std::optional(0.0) : ParseSeconds(flags.older_than);
  if (!seconds || *seconds < 0)
    return Error{ErrorCode::kInvalidArgument, fmt::format("--older-than '{}' is no time", flags.older_than),
                 "for instance 30d or 12h"};
  return {};
}

std::string WhySpared(const watch::KnownRun& run) {
  if (std::string held = watch::WhyHeld(run); !held.empty()) return held;
  if (!run.summary.note.empty()) return "it has a note";
  return WasNamed(run) ? "you named it" : "";
}

Runs ThoseBeyond(const RemovalFlags& flags, Runs runs, int64_t wall_ns) {
  std::ranges::sort(runs, std::greater<>(),
                    [](const serve::NamedRun& run) { return run.second->summary.wall_begin_ns; });
  double kept_bytes = 0;
  for (const auto& [name, run] : runs) {
    if (!WhySpared(*run).empty()) kept_bytes += static_cast<double>(run->summary.bytes);
  }
  const double older_s = ParseSeconds(flags.older_than).value_or(0);
  Runs beyond;
  bool full = false;
  for (size_t place = 0; place < runs.size(); ++place) {
    const watch::KnownRun& run = *runs[place].second;
    if (!WhySpared(run).empty()) continue;
    kept_bytes += static_cast<double>(run.summary.bytes);
    full |= flags.at_most_bytes && kept_bytes > static_cast<double>(*flags.at_most_bytes);
    const double age_s = static_cast<double>(wall_ns - EndOf(run)) / kNsPerSecond;
    const bool is_old = !flags.older_than.empty() && age_s > older_s;
    if (full || is_old || (flags.keep_newest && place >= *flags.keep_newest)) beyond.push_back(runs[place]);
  }
  std::ranges::reverse(beyond);
  return beyond;
}

int RemoveRuns(const RemovalFlags& flags, const std::string& directory, Runs runs) {
  Runs going;
  if (flags.prune) {
    going = ThoseBeyond(flags, runs, WallNs());
    SaySpared(runs);
  } else {
    auto named = ThoseNamed(flags, directory, runs);
    if (!named) return Fail(named.error(), StatusOf(named.error()));
    going = std::move(*named);
  }
  if (going.empty()) {
    Print(stdout, "no run of '{}' is beyond the limits\n", directory);
    return 0;
  }
  Print(stdout, "to be deleted: {}\n", CountOf(going));
  Say(going);
  if (!flags.yes && isatty(STDIN_FILENO) == 0) {
    Print(stdout, "nothing was deleted: this was a trial, and --yes deletes them\n");
    return 0;
  }
  (void)std::fflush(stdout);
  if (flags.yes || Agrees(going)) return Remove(directory, going);
  Print(stdout, "nothing was deleted\n");
  return 0;
}

}  // namespace fullbore::cli
