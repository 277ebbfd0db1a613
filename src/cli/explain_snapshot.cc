#include "cli/explain_snapshot.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/print.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "explain/memory/account.h"
#include "explain/memory/snapshot.h"
#include "report/memory/json.h"
#include "report/memory/page.h"
#include "report/memory/terminal.h"

namespace fullbore::cli {

namespace {

constexpr double kMostTimes = 1e4;

std::optional<double> TimesNamed(std::string_view word) {
  constexpr std::string_view kBatch = "batch=";
  if (!word.starts_with(kBatch) || !word.ends_with('x')) return std::nullopt;
  word.remove_prefix(kBatch.size());
  word.remove_suffix(1);
  const auto times = ParseDouble(word);
  return times && *times > 0 && *times <= kMostTimes ? times : std::nullopt;
}

}  // namespace

bool MeansSnapshot(const std::vector<std::string>& words) {
  std::error_code ignored;
  return words.size() == 1 && std::filesystem::is_regular_file(words[0], ignored) &&
         memory::IsSnapshot(words[0]);
}

Result<std::vector<double>> BatchesNamed(const std::vector<std::string>& what_if) {
  std::vector<double> batches;
  for (const std::string& word : what_if) {
    const auto times = TimesNamed(word);
    if (!times) {
      return Error{
          ErrorCode::kInvalidArgument, fmt::format("--what-if {}: not a change of a memory snapshot", word),
          "batch=2x asks about a batch of twice the size; expandable segments are always asked about"};
    }
    batches.push_back(*times);
  }
  return batches;
}

int ExplainSnapshot(const SnapshotFlags& flags) {
  const auto batches = BatchesNamed(flags.what_if);
  if (!batches) return Fail(batches.error(), kExitUsage);
  const auto snapshot = memory::ReadSnapshot(flags.path);
  if (!snapshot) return Fail(snapshot.error(), StatusOf(snapshot.error()));
  for (const std::string& message : snapshot->messages)
    Print(stderr, "fullbore: {}: {}\n", flags.path, message);
  const auto accounts = memory::AccountsOf(*snapshot, {*batches});
  const std::string name = std::filesystem::path(flags.path).filename().string();
  Result<void> html, json;
  if (flags.html.wanted()) html = flags.html.Write(report::MemoryToHtml(accounts, name));
  if (!flags.quiet && !AnyToStandardOutput({&flags.json, &flags.html}))
    PrintLaidOut(stdout, report::MemoryToTerminal(accounts, name, report::StyleFor(STDOUT_FILENO)));
  if (flags.json.wanted()) json = WriteJson(flags.json, report::MemoryToJson(accounts, name));
  if (!html) return Fail(html.error(), kExitFailure);
  return json ? 0 : Fail(json.error(), kExitFailure);
}

}  // namespace fullbore::cli
