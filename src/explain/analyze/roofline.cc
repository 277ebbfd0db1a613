// How near the device's limit its kernels come: by class and step, by operator and shape, by chain of
// operators.
#include <fmt/format.h>

#include "base/text.h"
#include "explain/analyze/section.h"

namespace fullbore::analyze {
namespace {

Cell Known(const std::optional<double>& value) { return value ? Cell(*value) : Cell(); }

Cell Ratio(const std::optional<double>& part, int64_t whole) {
  return part && whole > 0 ? Cell(*part / static_cast<double>(whole)) : Cell();
}

Cell Rate(double amount, int64_t ns) {
  return ns > 0 ? Cell(amount * 1e9 / static_cast<double>(ns)) : Cell();
}

const char* BoundName(record::Bound bound) {
  return bound == record::Bound::kCompute ? "compute" : bound == record::Bound::kMemory ? "memory" : "";
}

void NoteDevice(const RankTrace& rank, const record::Roofline& judged, Table* table) {
  const auto say = [&](const std::string& text) {
    table->Note(fmt::format("rank {}: {}", rank.rank(), text));
  };
  if (!judged.device.empty()) {
    say(fmt::format("{}: {:.4g} TFLOP/s dense in 16 bits, {:.4g} TB/s ({})", judged.device,
                    judged.peak_16bit_flops / 1e12, judged.bytes_per_s / 1e12, judged.device_source));
  }
  for (const std::string& note : judged.notes) say(note);
}

// Class by class, then all, then the steps.
void AppendSummary(const RankTrace& rank, Table* table) {
  if (!rank.trace().has_device_activity()) return;
  const record::Roofline& judged = rank.roofline();
  record::RooflineClass all;
  all.kernel_class = "all";
  for (const record::RooflineClass& one : judged.classes) {
    all.device_ns += one.device_ns;
    all.judged_ns += one.judged_ns;
    all.flops += one.flops;
    all.bytes += one.bytes;
    if (one.attainable_ns) all.attainable_ns = all.attainable_ns.value_or(0) + *one.attainable_ns;
  }
  const auto add = [&](const record::RooflineClass& one) {
    table->Add({rank.rank(), one.kernel_class, one.device_ns, one.judged_ns, one.flops, one.bytes,
                Rate(one.flops, one.judged_ns), Rate(one.bytes, one.judged_ns), Known(one.attainable_ns),
                Ratio(one.attainable_ns, one.judged_ns)});
  };
  for (const record::RooflineClass& one : judged.classes) add(one);
  add(all);
  NoteDevice(rank, judged, table);
  if (!judged.steps) return;
  const record::RooflineSteps& steps = *judged.steps;
  const auto per_step = [&](double ns) {
    return FormatDuration(static_cast<int64_t>(ns / static_cast<double>(steps.steps)));
  };
  if (steps.floor_ns) {
    table->Note(fmt::format(
        "rank {}: a step takes {}, of which the device's own work takes {}; at its limit that would "
        "be {}",
        rank.rank(), per_step(static_cast<double>(steps.wall_ns)),
        per_step(static_cast<double>(steps.device_ns)), per_step(*steps.floor_ns)));
    table->Note(fmt::format("rank {}: MFU {} of the 16-bit peak, {} of the peaks of the types that were used",
                            rank.rank(), FormatPercent(*steps.mfu), FormatPercent(*steps.mfu_of_types)));
  }
}

void AppendOperators(const RankTrace& rank, Table* table) {
  if (!rank.trace().has_device_activity()) return;
  const record::Roofline& judged = rank.roofline();
  for (const record::RooflineOperator& one : judged.operators) {
    const auto count = static_cast<double>(one.count);
    std::string why;
    for (const record::RooflineWhy& reason : one.why)
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", record::Name(reason.reason), reason.text);
    table->Add({rank.rank(), one.name, one.shape, one.type, one.kind, one.count, one.device_ns,
                static_cast<double>(one.device_ns) / count, Known(one.flops), Known(one.bytes),
                one.flops ? Rate(*one.flops * count, one.device_ns) : Cell(),
                one.bytes ? Rate(*one.bytes * count, one.device_ns) : Cell(), BoundName(one.bound),
                Known(one.attainable_ns), Known(one.Reached()),
                one.attainable_ns ? Cell(one.AboveNs()) : Cell(), why});
  }
  NoteDevice(rank, judged, table);
}

void AppendChains(const RankTrace& rank, Table* table) {
  if (!rank.trace().has_device_activity()) return;
  const record::Roofline& judged = rank.roofline();
  for (const record::RooflineChain& chain : judged.chains) {
    std::string operators;
    for (const std::string& name : chain.operators) operators += (operators.empty() ? "" : " | ") + name;
    table->Add({rank.rank(), std::string(record::Name(chain.reason)), chain.shape,
                static_cast<int64_t>(chain.operators.size()), chain.count, chain.device_ns,
                Known(chain.fused_ns), operators});
  }
  NoteDevice(rank, judged, table);
}

}  // namespace

const Section kRoofline = {
    "roofline",
    "how near the device's limit its kernels come, by class of kernel; MFU of the steps",
    {{"rank", ""},
     {"class", ""},
     {"device_ns", "ns"},
     {"judged_ns", "ns"},
     {"flops", "flops"},
     {"bytes", "bytes"},
     {"flops_per_s", "flops/s"},
     {"bytes_per_s", "bytes/s"},
     {"attainable_ns", "ns"},
     {"reached_ratio", "ratio"}},
    AppendSummary};

const Section kRooflineOperators = {
    "roofline-operators",
    "operators and shapes: work, what was reached of the attainable, and why not more",
    {{"rank", ""},
     {"name", ""},
     {"shape", ""},
     {"type", ""},
     {"kind", ""},
     {"count", "count"},
     {"device_ns", "ns"},
     {"mean_ns", "ns"},
     {"flops_each", "flops"},
     {"bytes_each", "bytes"},
     {"flops_per_s", "flops/s"},
     {"bytes_per_s", "bytes/s"},
     {"bound", ""},
     {"attainable_ns", "ns"},
     {"reached_ratio", "ratio"},
     {"above_ns", "ns"},
     {"why", ""}},
    AppendOperators};

const Section kRooflineChains = {"roofline-chains",
                                 "operators in a row that one kernel could do, and what that would take",
                                 {{"rank", ""},
                                  {"reason", ""},
                                  {"shape", ""},
                                  {"length", "count"},
                                  {"count", "count"},
                                  {"device_ns", "ns"},
                                  {"fused_ns", "ns"},
                                  {"operators", ""}},
                                 AppendChains};

}  // namespace fullbore::analyze
