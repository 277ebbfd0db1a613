#include "cli/skill.h"

#include <fmt/format.h>

#include "cli/subcommand.h"
#include "mcp/tool.h"
#include "report/finding_pages.h"

namespace fullbore::cli {

namespace {

// The order of work is the point: a guess that looks like advice is what this is to replace.
constexpr char kBeginning[] = R"(---
name: fullbore
description: Find out why a training run is slow, predict what a change gains, and prove it. Use when somebody asks why training is slow, why a GPU is idle, or whether an edit made training faster.
---

# Fullbore

It runs a training command unmodified, finds its narrowest pipe, says what that costs and what to change, and predicts
the gain. Never guess why a training is slow: ask.

## In this order

1. `diagnose` what is recorded already (a run, a profiler's trace, a running process), or `run` the command as it is:
   a minute of steps is enough.
2. Read the first finding, and its page (`explain_finding`) before you edit: it says when not to.
3. Make one edit, the one that is advised.
4. `compare` the command before with the command after.
5. `next_step` of each result says what to type next.

## Never

- Never claim a gain without `compare`, and only where `claim.holds` is true. Quote its interval (`gain`), its commands
  and the commit beside it.
- Never claim a gain where `claim.same_losses` is not true: what computes something else is not a faster version of it.
- Never call a prediction a measurement: `predicted` and `what_if` say what is expected, with a range.
- Never turn "not judged" into "fine": what was not seen is listed there, with what would show it.
- Never make two edits between two comparisons.
)";

std::string Tools() {
  std::string text = "\n## Tools of `fullbore mcp`\n\n| tool | command | what it does |\n|---|---|---|\n";
  for (const mcp::Tool& tool : mcp::AllTools())
    text += fmt::format("| `{}` | `fullbore {}` | {} |\n", tool.name, tool.words.front(), tool.description);
  return text;
}

std::string Commands() {
  std::string text =
      "\n## Commands\n\nWithout the server: each result as data is `--json FILE`, and `--help` begins with an "
      "example.\n\n| command | what it does |\n|---|---|\n";
  for (const Subcommand* command : AllSubcommands())
    text += fmt::format("| `fullbore {}` | {} |\n", command->name, command->summary);
  return text;
}

std::string Findings() {
  std::string text = "\n## Findings\n\n";
  for (const std::string_view page : report::FindingPages())
    text += fmt::format("- {}\n", page.substr(2, page.find('\n') - 2));
  return text;
}

}  // namespace

std::string SkillPage() { return kBeginning + Tools() + Commands() + Findings(); }

}  // namespace fullbore::cli
