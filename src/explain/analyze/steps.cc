// Each step's wall time and its shares, as in the report, one row per step.
#include "explain/analyze/section.h"

namespace fullbore::analyze {
namespace {

using record::Share;

constexpr Share kDeviceShares[] = {Share::kCompute,   Share::kCommExposed, Share::kCopyExposed,
                                   Share::kDataWait,  Share::kSync,        Share::kLaunch,
                                   Share::kHostOther, Share::kGap};

void Append(const RankTrace& rank, Table* table) {
  const timeline::DeviceTrace& trace = rank.trace();
  if (!rank.steps().how.empty()) table->Note(rank.steps().how);
  if (!trace.has_device_activity()) {
    table->Note("no device activity is recorded: the report has the shares of the training thread");
    return;
  }
  const auto& steps = rank.shares().steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const record::Step& step = steps[i];
    const bool marked = trace.steps.size() == steps.size();
    std::vector<Cell> row = {rank.rank(), marked ? trace.steps[i].number : step.index,
                             step.end_ns - step.wall_ns - rank.begin_ns(), step.wall_ns};
    for (const Share share : kDeviceShares) row.emplace_back(step.share_ns[record::Index(share)]);
    table->Add(std::move(row));
  }
}

}  // namespace

const Section kSteps = {"steps",
                        "every step's wall time and its shares",
                        {{"rank", ""},
                         {"step", ""},
                         {"begin_ns", "ns"},
                         {"wall_ns", "ns"},
                         {"compute_ns", "ns"},
                         {"comm_exposed_ns", "ns"},
                         {"copy_exposed_ns", "ns"},
                         {"data_wait_ns", "ns"},
                         {"sync_ns", "ns"},
                         {"launch_ns", "ns"},
                         {"host_other_ns", "ns"},
                         {"gap_ns", "ns"}},
                        Append};

}  // namespace fullbore::analyze
