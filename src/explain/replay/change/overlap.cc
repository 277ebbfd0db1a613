// Gradients exchanged while the backward pass computes those that follow, as DistributedDataParallel does.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "explain/replay/change/changes.h"
#include "explain/replay/transfer.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::Phase;
using record::StepGraph;
using record::Work;

// One step's backward pass on the device, and the collectives that begin only when it has ended: those of gradients,
// which the optimizer waits for.
struct Exchange {
  std::vector<uint32_t> kernels;      // of the backward pass
  std::vector<uint32_t> collectives;  // behind all of them, before the optimizer's first kernel
  bool overlaps = false;              // others ran beside the pass already

  bool CanOverlap() const { return !overlaps && !kernels.empty() && !collectives.empty(); }
};

std::vector<Exchange> ExchangesOf(const StepGraph& graph) {
  std::vector<Exchange> exchanges(graph.step_ends.size() + 1);
  std::vector<bool> updates(exchanges.size());
  const auto steps = StepOfNodes(graph);
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const StepGraph::Node& node = graph.nodes[i];
    if (node.work != Work::kDevice) continue;
    Exchange& exchange = exchanges[steps[i]];
    if (IsCollective(node)) {
      if (!updates[steps[i]] && node.of_gradients) exchange.collectives.push_back(i);
    } else if (IsOfBackward(node.phase) && (record::Bit(node.lane) & record::kCopyLanes) == 0) {
      if (!exchange.kernels.empty() && !exchange.collectives.empty()) exchange.overlaps = true;
      exchange.collectives.clear();  // those before the pass are not for gradients
      exchange.kernels.push_back(i);
    } else if (node.phase == Phase::kOptimizer) {
      updates[steps[i]] = true;
    }
  }
  return exchanges;
}

class OverlapChange : public Change {
 public:
  std::string_view id() const override { return "overlap"; }
  std::string_view does() const override {
    return "gradients are exchanged while the backward pass computes those that follow";
  }
  std::string_view assumes() const override {
    return "a wrapper that exchanges gradients in buckets of 25 MB, as DistributedDataParallel does";
  }
  Cost cost() const override { return Cost::kCode; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    for (const Exchange& exchange : ExchangesOf(graph)) {
      if (exchange.CanOverlap()) return std::nullopt;
    }
    return "no collective of these steps begins only when the backward pass has ended";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    const double saved_ns = TransferOf(graph).SavedNs(outlook);
    const CollectiveCalls calls(graph);
    for (const Exchange& exchange : ExchangesOf(graph)) {
      if (exchange.CanOverlap()) Overlap(exchange, saved_ns, calls, outlook, graph);
    }
    return 0;
  }

 private:
  // DistributedDataParallel's defaults; the first is small, so that something begins early.
  static constexpr int64_t kBucketBytes = 25 << 20, kFirstBucketBytes = 1 << 20;

  static double BytesOf(const StepGraph::Node& node) {
    return static_cast<double>(std::max<int64_t>(1, node.bytes));
  }

  // Each collective's bucket: which part of all bytes is there when it is full.
  struct Buckets {
    std::vector<double> full_at;  // for each collective
    std::vector<bool> is_merged;  // becomes a part of another
    double merged() const { return static_cast<double>(std::ranges::count(is_merged, true)); }
  };
  static Buckets BucketsOf(const Exchange& exchange, double all_bytes, const StepGraph& graph) {
    const size_t count = exchange.collectives.size();
    const bool sized =
        std::ranges::any_of(exchange.collectives, [&](uint32_t i) { return graph.nodes[i].bytes > 0; });
    Buckets buckets;
    double bytes = 0, in_bucket = 0;
    // Where no size is known, each collective may as well be a bucket.
    double most = sized ? static_cast<double>(kFirstBucketBytes) : 0;
    size_t waiting = 0;
    for (const uint32_t i : exchange.collectives) {
      bytes += BytesOf(graph.nodes[i]);
      in_bucket += BytesOf(graph.nodes[i]);
      ++waiting;
      if (in_bucket < most && buckets.full_at.size() + waiting < count) continue;
      buckets.is_merged.insert(buckets.is_merged.end(), waiting - 1, true);
      buckets.is_merged.push_back(false);
      buckets.full_at.insert(buckets.full_at.end(), std::exchange(waiting, 0), bytes / all_bytes);
      in_bucket = 0;
      if (sized) most = static_cast<double>(kBucketBytes);
    }
    return buckets;
  }

  static void Overlap(const Exchange& exchange, double saved_ns, const CollectiveCalls& calls,
                      Outlook outlook, StepGraph& graph) {
    // Collectives and what they run beside take multiprocessors and bandwidth from each other. How much is an estimate.
    constexpr std::array<double, 3> kLonger = {1.2, 1.05, 1}, kSlower = {1.15, 1.04, 1};
    double all_bytes = 0, bytes = 0, all_ns = 0;
    for (const uint32_t i : exchange.collectives) {
      all_bytes += BytesOf(graph.nodes[i]);
      all_ns += static_cast<double>(graph.nodes[i].duration_ns - graph.nodes[i].wait_ns);
    }
    const Buckets in_buckets = BucketsOf(exchange, all_bytes, graph);
    const double left = all_ns > 0 ? std::max(0.1, 1 - in_buckets.merged() * saved_ns / all_ns) : 1;
    const double longer = kLonger[static_cast<size_t>(outlook)] * left;
    int64_t backward_ns = 0;
    for (const uint32_t kernel : exchange.kernels) backward_ns += graph.nodes[kernel].duration_ns;
    const double beside = std::min(1.0, all_ns / std::max(1.0, static_cast<double>(backward_ns)));
    const double slower = 1 + (kSlower[static_cast<size_t>(outlook)] - 1) * beside;
    backward_ns = 0;
    for (const uint32_t kernel : exchange.kernels) {
      StepGraph::Node& node = graph.nodes[kernel];
      node.duration_ns = static_cast<int64_t>(static_cast<double>(node.duration_ns) * slower);
      backward_ns += node.duration_ns;
    }
    // The kernel that ends when so much of the pass is done.
    const auto after = [&](double done) {
      auto to_do_ns = static_cast<int64_t>(done * static_cast<double>(backward_ns));
      for (const uint32_t kernel : exchange.kernels) {
        if ((to_do_ns -= graph.nodes[kernel].duration_ns) <= 0) return kernel;
      }
      return exchange.kernels.back();
    };
    auto full_at = in_buckets.full_at.begin();
    auto is_merged = in_buckets.is_merged.begin();
    for (const uint32_t i : exchange.collectives) {
      if (*is_merged++) calls.LeaveOut(i, outlook, graph);
      StepGraph::Node& node = graph.nodes[i];
      const double own_ns = static_cast<double>(node.duration_ns - node.wait_ns) * longer;
      const double part = BytesOf(node) / all_bytes, before = bytes / all_bytes;
      const double buckets = std::ceil(BytesOf(node) / static_cast<double>(kBucketBytes));
      bytes += BytesOf(node);
      node.duration_ns = node.wait_ns + static_cast<int64_t>(own_ns);
      // It begins with its bucket, or with the first of its own, and ends no sooner than its last one can.
      const double at = *full_at++;
      const uint32_t first = after(buckets > 1 ? before + part / buckets : at);
      const uint32_t last = after(buckets > 1 ? before + part : at);
      const auto ahead_ns = static_cast<int64_t>(own_ns * (1 - 1 / buckets));
      Release(i,
              {StepGraph::Edge{first, Dependency::kEvent, false, 0},
               {last, Dependency::kEvent, false, -ahead_ns}},
              graph);
    }
  }

  // Replaces what the collective waits for, other than those before it on its own stream.
  static void Release(uint32_t node, const std::array<StepGraph::Edge, 2>& by, StepGraph& graph) {
    size_t tied = by.size();  // the last one first: without room for both, it is the one that counts
    for (uint32_t e = graph.first_edge[node]; e < graph.first_edge[node + 1]; ++e) {
      StepGraph::Edge& edge = graph.edges[e];
      if (edge.kind == Dependency::kStream && IsCollective(graph.nodes[edge.from])) continue;
      if (tied > 0) {
        edge = by[--tied];
      } else {
        Drop(edge);
      }
    }
  }
};

}  // namespace

const Change* Overlap() {
  static const OverlapChange change;
  return &change;
}

}  // namespace fullbore::replay
