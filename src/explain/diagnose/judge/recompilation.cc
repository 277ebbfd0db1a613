// recompilation: functions are compiled again and again while the training runs, because something that a compiled
// program is made for keeps changing; or no longer, because the compiler has given up on them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "record/json_text.h"

namespace fullbore::diagnose {

using record::HostOther;
using record::Step;

namespace {

// What the hook said of one function that was compiled more than once.
struct Compiled {
  std::string function, file, why, example;
  int line = 0;
  double count = 0, ns = 0;
};

std::vector<Compiled> CompiledFunctions(const View& view) {
  const nlohmann::json said = record::ParseJson(view.Fact("compilations").value_or(""));
  std::vector<Compiled> functions;
  for (const nlohmann::json& one : said.is_array() ? said : nlohmann::json::array()) {
    const auto text = [&](const char* key) {
      return one.contains(key) && one[key].is_string() ? one[key].get<std::string>() : "";
    };
    const auto number = [&](const char* key) { return std::max(0.0, record::NumberIn(one, key)); };
    functions.push_back({text("function"), text("file"), text("why"), text("example"),
                         static_cast<int>(std::min(number("line"), 1e9)), number("count"), number("ns")});
  }
  std::ranges::stable_sort(functions, [](const Compiled& a, const Compiled& b) { return a.ns > b.ns; });
  return functions;
}

bool Compiles(const Step* step) {
  return step->host_other_ns[static_cast<size_t>(HostOther::kCompilation)] > 0;
}

// What is compiled for less than this part of the worst function's time is not its cause.
constexpr double kWorthNaming = 0.1;

// In how many steady steps something was compiled; none if it stopped in their first half.
int64_t StepsThatCompile(const RankView& rank) {
  const auto& steady = rank.steady;
  const auto later = steady.begin() + static_cast<std::ptrdiff_t>(steady.size() / 2);
  return std::any_of(later, steady.end(), Compiles) ? std::ranges::count_if(steady, Compiles) : 0;
}

struct Reason {
  const char* why;
  const char* because;
  std::vector<std::string> fix;
  size_t in_torch = 0;  // which of kInTorch comes first
};

const Reason& ReasonNamed(const std::string& why) {
  static const std::vector<Reason> table = {
      {"shapes",
       ", because the shapes of its arguments change",
       {"pad the batches to one shape, or to a few (buckets of lengths): each new shape is a program of its "
        "own",
        "drop or pad the short last batch of an epoch"},
       1},
      {"constants",
       ", because a value that is a constant of the program changes",
       {"pass the value that changes as an array, not as a static argument (static_argnums, "
        "static_argnames): jnp.where and jax.lax.cond then decide inside the program",
        "where it must stay static, let it take few values"},
       2},
      {"new-function",
       ", because it is made anew each time",
       {"call jax.jit once, outside the loop, on a function that is defined outside of it: a new lambda, "
        "partial or inner function is a new program"},
       3},
      {"", "", {}, 0},
  };
  const auto at = std::ranges::find_if(table, [&](const Reason& reason) { return reason.why == why; });
  return at == table.end() ? table.back() : *at;
}

// Dynamo compiles for shapes that change by itself, once: what goes on compiling mostly has another reason.
constexpr std::array kInTorch = {
    "TORCH_LOGS=recompiles python ... says at each compilation which guard failed: what was new",
    "for shapes that change: torch.compile(model, dynamic=True), or pad the batches to a few lengths",
    "for Python numbers that change (a step counter, a rate): pass them as tensors",
    "call torch.compile once, outside the loop",
};

// The one that fits the reason first.
std::vector<std::string> FixInTorch(const std::string& why) {
  std::vector<std::string> fix(kInTorch.begin(), kInTorch.end());
  const auto first = fix.begin() + static_cast<std::ptrdiff_t>(ReasonNamed(why).in_torch);
  std::rotate(fix.begin(), first, first + 1);
  return fix;
}

// After so many programs, a function runs uncompiled wherever none of them fits. What that costs is not known.
std::optional<Finding> GivenUp(const View& view) {
  if (view.Fact("compile_limit") != "true") return std::nullopt;
  Finding finding;
  finding.cause = "given-up";
  finding.severity = Severity::kWarning;
  const std::vector<Compiled> functions = CompiledFunctions(view);
  const auto most = std::ranges::max_element(functions, {}, &Compiled::count);
  const bool known = most != functions.end();
  finding.title = fmt::format(
      "torch.compile has given up{}: it reached the limit of programs for one "
      "function, and runs uncompiled what none of them fits.",
      known ? fmt::format(" on {} after {} of them", most->function, FormatCount(most->count)) : "");
  if (known && !most->example.empty())
    finding.title.insert(finding.title.size() - 1, fmt::format(" (the last time: {})", most->example));
  if (known && !most->file.empty()) finding.where.push_back({most->file, most->line, "", 0});
  finding.fix = FixInTorch(known ? most->why : "");
  finding.fix.emplace_back("torch._dynamo.config.recompile_limit, if the programs are as many and no more");
  return finding;
}

// A break costs the launches around it, and what could have been fused across it: how much is not known.
std::optional<Finding> GraphBreaks(const View& view) {
  const nlohmann::json said = record::ParseJson(view.Fact("graph_breaks").value_or(""));
  if (!said.is_object() || record::NumberIn(said, "count") < 1) return std::nullopt;
  Finding finding;
  finding.cause = "graph-breaks";
  finding.severity = Severity::kInfo;
  finding.open = true;
  const double count = record::NumberIn(said, "count");
  std::vector<std::string> reasons;
  if (const auto most = said.find("most"); most != said.end() && most->is_array()) {
    for (const nlohmann::json& one : *most) {
      if (one.is_object() && one.contains("reason") && one["reason"].is_string())
        reasons.push_back(one["reason"].get<std::string>());
    }
  }
  finding.title = fmt::format("torch.compile breaks its graph at {} place{}{}.", FormatCount(count),
                              count == 1 ? "" : "s",
                              reasons.empty() ? "" : ": " + fmt::format("{}", fmt::join(reasons, "; ")));
  finding.fix = {
      "TORCH_LOGS=graph_breaks python ... names each line; torch.compile(..., fullgraph=True) stops at the first",
      "move what breaks it (printing, .item(), data-dependent branches, unsupported calls) out of the "
      "compiled function"};
  EvidenceBuilder(finding).FromHook("graph breaks", count, "count");
  return finding;
}

}  // namespace

std::optional<Finding> JudgeRecompilation(const View& view, Diagnosis& /*diagnosis*/) {
  const RankView& rank = view.lead();
  const double share = rank.Ratio(HostOther::kCompilation);
  const int64_t steps = StepsThatCompile(rank);
  const auto severity = SeverityOf(share, kRecompilation, rank.steps);
  if (!severity || steps < kStepsThatCompile) {
    if (auto finding = GivenUp(view)) return finding;
    return GraphBreaks(view);
  }
  const std::vector<Compiled> functions = CompiledFunctions(view);
  const bool in_torch = view.Fact("framework").value_or("") == "torch";
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = *severity;
  finding.share = share;
  const std::string takes = fmt::format("Compiling takes {} of the time", FormatPercent(share));
  evidence.FromHook("compilation", share, "ratio");
  evidence.FromHook("steps in which something is compiled",
                    static_cast<double>(steps) / static_cast<double>(rank.steady.size()), "ratio");
  if (functions.empty()) {
    finding.title = takes + ": functions are compiled again and again while the training runs.";
  } else {
    const Compiled& most = functions.front();
    const Reason& reason = ReasonNamed(most.why);
    finding.cause = reason.why;
    finding.title =
        fmt::format("{}: {} was compiled {} times{}{}.", takes, most.function, FormatCount(most.count),
                    reason.because, most.example.empty() ? "" : " (" + most.example + ")");
    if (!in_torch) finding.fix = reason.fix;
    for (const Compiled& function : functions) {
      if (!function.file.empty() && finding.where.size() < 3 && function.ns >= kWorthNaming * most.ns)
        finding.where.push_back({function.file, function.line, "", 0});
    }
    evidence.FromHook("compilations of " + most.function, most.count, "count");
    if (most.count > 0) evidence.FromHook("one of them, on average", most.ns / most.count / 1e6, "ms");
  }
  if (in_torch) {
    finding.fix = FixInTorch(finding.cause);
  } else {
    finding.fix.emplace_back(
        "jax.config.update(\"jax_explain_cache_misses\", True) says at each compilation what was new");
  }
  finding.speedup = RemovalOf(share, kSavedByBuckets);
  finding.method = fmt::format("{} to 100 % of the compilation removed", FormatPercent(kSavedByBuckets));
  finding.supersedes = {{"unstable-steps", ""}};
  return finding;
}

}  // namespace fullbore::diagnose
