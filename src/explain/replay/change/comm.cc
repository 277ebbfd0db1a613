// Changes to what ranks exchange. A collective of which nothing is left keeps no rank waiting, either.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "explain/replay/change/changes.h"
#include "explain/replay/transfer.h"

namespace fullbore::replay {
namespace {

using record::StepGraph;

bool WaitsForRanks(const StepGraph::Node& node) { return IsCollective(node) && node.wait_ns > 0; }

class NoStragglerChange : public Change {
 public:
  std::string_view id() const override { return "straggler"; }
  std::string_view does() const override { return "all ranks come to their collectives at the same time"; }
  std::string_view assumes() const override { return "that what delays the last rank can be taken away"; }
  Cost cost() const override { return Cost::kNothing; }
  bool helps_others() const override { return false; }  // who comes last waits for nobody
  bool removes() const override { return true; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (PerStepNs(graph, WaitsForRanks) > 0) return std::nullopt;
    return "no wait for another rank is known: that needs the traces of several ranks";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    constexpr std::array<double, 3> kTaken = {0.7, 0.9, 1};
    for (StepGraph::Node& node : graph.nodes) {
      if (!IsCollective(node)) continue;
      const auto ns =
          static_cast<int64_t>(static_cast<double>(node.wait_ns) * kTaken[static_cast<size_t>(outlook)]);
      node.duration_ns = std::max<int64_t>(0, node.duration_ns - ns);
      node.wait_ns -= ns;
      node.meeting = 0;
    }
    return 0;
  }
};

class FasterCommChange : public Change {
 public:
  std::string_view id() const override { return "comm"; }
  std::string_view does() const override { return "gradients are exchanged in 16 bit: half of the bytes"; }
  std::string_view assumes() const override {
    return "gradients in float32 now, and collectives bound by their bytes";
  }
  Cost cost() const override { return Cost::kNumerics; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (PerStepNs(graph, IsOfGradients) > 0) return std::nullopt;
    return "no exchange of gradients was recorded";
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    constexpr std::array<double, 3> kLeft = {0.8, 0.6, 0.5};
    for (StepGraph::Node& node : graph.nodes) {
      if (!IsOfGradients(node)) continue;
      const auto own = static_cast<double>(node.duration_ns - node.wait_ns);
      node.duration_ns = node.wait_ns + static_cast<int64_t>(own * kLeft[static_cast<size_t>(outlook)]);
    }
    return 0;
  }
};

// A change with a number in its name: "links=4".
class NumberedChange : public Change {
 public:
  NumberedChange(std::string_view name, int number)
      : number_(number), id_(std::string(name) + "=" + std::to_string(number)) {}
  std::string_view id() const override { return id_; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (PerStepNs(graph, IsCollective) > 0) return std::nullopt;
    return "no collective was recorded";
  }

 protected:
  int number() const { return number_; }

 private:
  int number_;
  std::string id_;
};

class FasterLinksChange : public NumberedChange {
 public:
  explicit FasterLinksChange(int times) : NumberedChange("links", times) {}
  std::string_view does() const override { return "ranks are connected by faster links"; }
  std::string_view assumes() const override {
    return "collectives bound by their bytes, as far as sizes tell";
  }
  Cost cost() const override { return Cost::kCode; }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    constexpr std::array<double, 3> kOfStart = {1.5, 1, 0};
    const Transfer transfer = TransferOf(graph);
    for (StepGraph::Node& node : graph.nodes) {
      if (!IsCollective(node)) continue;
      const auto own_ns = static_cast<double>(node.duration_ns - node.wait_ns);
      const double start_ns = std::min(own_ns, transfer.start_ns * kOfStart[static_cast<size_t>(outlook)]);
      node.duration_ns = node.wait_ns + static_cast<int64_t>(start_ns + (own_ns - start_ns) / number());
    }
    return 0;
  }
};

// Of what a data parallel wrapper exchanges.
class GradientsChange : public NumberedChange {
 public:
  using NumberedChange::NumberedChange;
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    if (PerStepNs(graph, IsOfGradients) > 0) return std::nullopt;
    return "no exchange of gradients was recorded";
  }
};

class AccumulationChange : public GradientsChange {
 public:
  explicit AccumulationChange(int steps) : GradientsChange("accumulate", steps) {}
  std::string_view does() const override {
    return "gradients are exchanged and applied once in several steps";
  }
  std::string_view assumes() const override { return "a model that trains as well with the larger batch"; }
  Cost cost() const override { return Cost::kNumerics; }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    // Which of the recorded steps exchange: every n-th, hopefully beginning late, cautiously with the first.
    const auto n = static_cast<uint32_t>(number());
    const uint32_t which = outlook == Outlook::kCautious ? 1 % n : outlook == Outlook::kExpected ? n / 2 : 0;
    const auto steps = StepOfNodes(graph);
    const CollectiveCalls calls(graph);
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      StepGraph::Node& node = graph.nodes[i];
      const bool of_update = IsOfGradients(node) || node.phase == record::Phase::kOptimizer;
      if (!of_update || steps[i] % n == which) continue;
      node.duration_ns = node.wait_ns = node.meeting = 0;
      if (IsCollective(node)) calls.LeaveOut(i, outlook, graph);
    }
    return 0;
  }
};

class BucketsChange : public GradientsChange {
 public:
  explicit BucketsChange(int megabytes) : GradientsChange("bucket", megabytes) {}
  std::string_view does() const override { return "gradients are exchanged in larger buckets"; }
  std::string_view assumes() const override { return "collectives that could as well be one"; }
  Cost cost() const override { return Cost::kMemory; }
  // Collectives that follow one another on a stream become one, which begins when the last of them could.
  double Apply(Outlook outlook, StepGraph& graph) const override {
    const CollectiveCalls calls(graph);
    const double saved_ns = TransferOf(graph).SavedNs(outlook);
    const auto steps = StepOfNodes(graph);
    struct Bucket {
      uint32_t step = 0;
      std::vector<uint32_t> nodes;
      int64_t bytes = 0;
    };
    std::map<uint16_t, Bucket> open;  // by stream
    const auto close = [&](Bucket& bucket) {
      int64_t own_ns = 0;
      for (const uint32_t i : bucket.nodes) {
        StepGraph::Node& node = graph.nodes[i];
        own_ns += node.duration_ns - node.wait_ns;
        if (i == bucket.nodes.back()) break;
        node.duration_ns = node.wait_ns = node.meeting = 0;
        calls.LeaveOut(i, outlook, graph);
      }
      if (bucket.nodes.size() > 1) {
        const double merged_ns =
            static_cast<double>(own_ns) - saved_ns * static_cast<double>(bucket.nodes.size() - 1);
        StepGraph::Node& last = graph.nodes[bucket.nodes.back()];
        last.duration_ns =
            last.wait_ns + std::min(own_ns, static_cast<int64_t>(std::max(saved_ns, merged_ns)));
        last.bytes = bucket.bytes;
      }
      bucket = {};
    };
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      const StepGraph::Node& node = graph.nodes[i];
      if (!IsOfGradients(node)) continue;
      Bucket& bucket = open[node.place];
      const bool full = bucket.bytes + std::max<int64_t>(0, node.bytes) > int64_t{number()} << 20;
      if (bucket.step != steps[i] || full) close(bucket);
      bucket.step = steps[i];
      bucket.nodes.push_back(i);
      bucket.bytes += std::max<int64_t>(0, node.bytes);
    }
    for (auto& [stream, bucket] : open) close(bucket);
    return 0;
  }
};

template <typename Kind>
const Change* Numbered(int number, int most) {
  static const std::vector<Kind> all = [most] {
    std::vector<Kind> changes;
    for (int i = 1; i <= most; ++i) changes.emplace_back(i);
    return changes;
  }();
  return number < 1 || number > most ? nullptr : &all[static_cast<size_t>(number - 1)];
}

}  // namespace

const Change* FasterLinks(int times) { return Numbered<FasterLinksChange>(times, kMaxLinks); }
const Change* Accumulation(int steps) { return Numbered<AccumulationChange>(steps, kMaxAccumulation); }
const Change* Buckets(int megabytes) { return Numbered<BucketsChange>(megabytes, kMaxBucketMb); }

const Change* NoStraggler() {
  static const NoStragglerChange change;
  return &change;
}
const Change* FasterComm() {
  static const FasterCommChange change;
  return &change;
}

}  // namespace fullbore::replay
