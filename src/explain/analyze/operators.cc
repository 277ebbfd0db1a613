// What the host called: framework operators with the device work that each launched, and the sequences of
// kernels that repeat.
#include <algorithm>
#include <map>

#include "explain/analyze/section.h"

namespace fullbore::analyze {
namespace {

using timeline::DeviceOp;
using timeline::kNone;
using timeline::NameId;

// HTA's min_pattern_len: shorter sequences are not worth fusing.
constexpr size_t kMinKernels = 3;
constexpr size_t kMinRepeats = 2;
// If no operators are recorded, windows of this many kernels of a stream are counted instead.
constexpr size_t kWindow = 4;
constexpr size_t kMaxShown = 24;  // kernels of a sequence that are named

struct OperatorSum {
  int64_t count = 0, host_ns = 0, operations = 0, device_ns = 0, late_ns = 0;
};

void AppendOperators(const RankTrace& rank, Table* table) {
  const auto& operators = rank.operators();
  std::map<NameId, OperatorSum> sums;
  for (const Operator& one : operators) {
    OperatorSum& sum = sums[one.name];
    ++sum.count;
    sum.host_ns += one.end_ns - one.begin_ns;
  }
  int64_t outside = 0;
  for (const DeviceOp& op : rank.trace().ops) {
    const uint32_t index = rank.OperatorOf(op);
    if (index == kNone) {
      ++outside;
      continue;
    }
    OperatorSum& sum = sums[operators[index].name];
    ++sum.operations;
    sum.device_ns += op.end_ns - op.begin_ns;
    sum.late_ns += std::max<int64_t>(0, op.begin_ns - op.launch_end_ns);
  }
  std::vector<std::pair<NameId, OperatorSum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.device_ns > b.second.device_ns; });
  for (const auto& [name, sum] : sorted) {
    Cell delay;
    if (sum.operations > 0) delay = static_cast<double>(sum.late_ns) / static_cast<double>(sum.operations);
    table->Add({rank.rank(), rank.Name(name), sum.count, sum.host_ns,
                static_cast<double>(sum.host_ns) / static_cast<double>(sum.count), sum.operations,
                sum.device_ns, delay});
  }
  if (operators.empty()) table->Note("the trace records no operators");
  if (outside > 0) {
    table->Note("rank " + std::to_string(rank.rank()) + ": " + std::to_string(outside) +
                " device operations were launched outside of every recorded operator");
  }
}

struct Sequence {
  std::string launched_by;
  std::vector<NameId> kernels;
  auto operator<=>(const Sequence&) const = default;
};

struct Repeats {
  int64_t count = 0, host_ns = 0, device_ns = 0;
  bool host_known = false;
};

using Sequences = std::map<Sequence, Repeats>;

Sequences ByOperator(const RankTrace& rank) {
  const auto& operators = rank.operators();
  std::vector<std::vector<const DeviceOp*>> launched(operators.size());
  for (const DeviceOp& op : rank.trace().ops) {
    const uint32_t index = rank.OperatorOf(op);
    if (index != kNone) launched[index].push_back(&op);
  }
  Sequences sequences;
  for (size_t i = 0; i < operators.size(); ++i) {
    if (launched[i].size() < kMinKernels) continue;
    Sequence sequence{rank.Name(operators[i].name), {}};
    int64_t device_ns = 0;
    for (const DeviceOp* op : launched[i]) {
      sequence.kernels.push_back(op->name);
      device_ns += op->end_ns - op->begin_ns;
    }
    Repeats& repeats = sequences[sequence];
    ++repeats.count;
    repeats.host_ns += operators[i].end_ns - operators[i].begin_ns;
    repeats.device_ns += device_ns;
    repeats.host_known = true;
  }
  return sequences;
}

Sequences ByWindow(const RankTrace& rank) {
  Sequences sequences;
  for (const auto& [stream, ops] : rank.ByStream()) {
    for (size_t i = 0; i + kWindow <= ops.size(); ++i) {
      Sequence sequence{"stream " + rank.Stream(stream), {}};
      int64_t device_ns = 0;
      for (size_t k = i; k < i + kWindow; ++k) {
        sequence.kernels.push_back(ops[k]->name);
        device_ns += ops[k]->end_ns - ops[k]->begin_ns;
      }
      Repeats& repeats = sequences[sequence];
      ++repeats.count;
      repeats.device_ns += device_ns;
    }
  }
  return sequences;
}

// "a | b x3 | c": runs of one kernel are counted.
std::string Written(const RankTrace& rank, const std::vector<NameId>& kernels) {
  std::string text;
  size_t shown = 0;
  for (size_t i = 0; i < kernels.size();) {
    size_t run = 1;
    while (i + run < kernels.size() && kernels[i + run] == kernels[i]) ++run;
    if (++shown > kMaxShown) return text + " | ...";
    text += (text.empty() ? "" : " | ") + rank.Name(kernels[i]);
    if (run > 1) text += " x" + std::to_string(run);
    i += run;
  }
  return text;
}

void AppendSequences(const RankTrace& rank, Table* table) {
  const bool operators = !rank.operators().empty();
  const Sequences sequences = operators ? ByOperator(rank) : ByWindow(rank);
  if (!operators && !sequences.empty()) {
    table->Note("the trace records no operators: these are all runs of " + std::to_string(kWindow) +
                " kernels that follow one another on a stream, and these overlap");
  }
  std::vector<const Sequences::value_type*> sorted;
  for (const auto& one : sequences) {
    if (one.second.count >= static_cast<int64_t>(kMinRepeats)) sorted.push_back(&one);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->second.count != b->second.count ? a->second.count > b->second.count
                                              : a->second.device_ns > b->second.device_ns;
  });
  for (const auto* one : sorted) {
    const Repeats& repeats = one->second;
    table->Add({rank.rank(), one->first.launched_by, static_cast<int64_t>(one->first.kernels.size()),
                repeats.count, repeats.device_ns, repeats.host_known ? Cell(repeats.host_ns) : Cell(),
                Written(rank, one->first.kernels)});
  }
}

}  // namespace

const Section kOperators = {"operators",
                            "outermost operators: host time, and the device work that each launched",
                            {{"rank", ""},
                             {"operator", ""},
                             {"count", "count"},
                             {"host_ns", "ns"},
                             {"host_mean_ns", "ns"},
                             {"operations", "count"},
                             {"device_ns", "ns"},
                             {"launch_delay_mean_ns", "ns"}},
                            AppendOperators};

const Section kSequences = {"sequences",
                            "sequences of three kernels or more that one operator launches again and again",
                            {{"rank", ""},
                             {"launched_by", ""},
                             {"length", "count"},
                             {"count", "count"},
                             {"device_ns", "ns"},
                             {"host_ns", "ns"},
                             {"kernels", ""}},
                            AppendSequences};

}  // namespace fullbore::analyze
