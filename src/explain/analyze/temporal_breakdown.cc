// Where the time between the first and the last device activity went: HTA's temporal breakdown, with
// communication and copies beside it.
#include "explain/analyze/section.h"

namespace fullbore::analyze {
namespace {

double Ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void AppendTemporal(const RankTrace& rank, Table* table) {
  if (!rank.trace().has_device_activity()) return;
  const timeline::DeviceShares& shares = rank.shares();
  const timeline::DeviceTotals& totals = shares.totals;
  const int64_t span = shares.end_ns - shares.begin_ns;
  const int64_t idle = span - totals.busy_ns;
  const int64_t other = totals.busy_ns - totals.compute_ns;
  table->Add({rank.rank(), span, idle, totals.compute_ns, other, Ratio(idle, span),
              Ratio(totals.compute_ns, span), Ratio(other, span), totals.comm_ns, totals.comm_exposed_ns,
              totals.copy_ns, totals.copy_exposed_ns});
}

void AppendOverlap(const RankTrace& rank, Table* table) {
  if (!rank.trace().has_device_activity()) return;
  const timeline::DeviceTotals& totals = rank.shares().totals;
  Cell ratio;
  if (totals.comm_ns > 0)
    ratio = Ratio(totals.comm_overlapped_ns, totals.comm_ns);
  else
    table->Note("no collective ran, so there is nothing to overlap");
  table->Add({rank.rank(), totals.comm_ns, totals.comm_overlapped_ns, totals.comm_exposed_ns, ratio,
              totals.compute_ns});
}

}  // namespace

const Section kTemporalBreakdown = {"temporal-breakdown",
                                    "device time: idle, computing, and the rest",
                                    {{"rank", ""},
                                     {"span_ns", "ns"},
                                     {"idle_ns", "ns"},
                                     {"compute_ns", "ns"},
                                     {"non_compute_ns", "ns"},
                                     {"idle_ratio", "ratio"},
                                     {"compute_ratio", "ratio"},
                                     {"non_compute_ratio", "ratio"},
                                     {"comm_ns", "ns"},
                                     {"comm_exposed_ns", "ns"},
                                     {"copy_ns", "ns"},
                                     {"copy_exposed_ns", "ns"}},
                                    AppendTemporal};

const Section kOverlap = {"overlap",
                          "how much of the communication runs behind computation",
                          {{"rank", ""},
                           {"comm_ns", "ns"},
                           {"overlapped_ns", "ns"},
                           {"exposed_ns", "ns"},
                           {"overlap_ratio", "ratio"},
                           {"compute_ns", "ns"}},
                          AppendOverlap};

}  // namespace fullbore::analyze
