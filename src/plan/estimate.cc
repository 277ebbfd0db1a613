#include "plan/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "explain/replay/change/changes.h"
#include "plan/feed.h"
#include "plan/link.h"

namespace fullbore::plan {

using record::StepGraph;
using record::Work;
using replay::Change;
using replay::Outlook;
using replay::Prediction;

namespace {

// More of the device's time than this in matrix kernels of unknown work, and another device is not told from it.
constexpr double kMostUnknown = 0.25;
// A smaller part of the step spent waiting does not bind.
constexpr double kBinds = 0.05;
// NCCL over PCIe reaches about half of the bus. Assumed; the range is from a quarter to all of it.
constexpr double kOfBus = 0.5, kOfBusAtLeast = 0.25;
// What a link is said to carry is what it reaches at best.
constexpr double kOfLinkAtLeast = 0.67;
// Of a recorded exchange on links that nothing is known of elsewhere.
constexpr double kUnknownLink = 2, kOtherNumber = 1.3;

bool IsOwnDevice(const Recorded& recorded, const Setup& setup) {
  return setup.device == nullptr || setup.device == recorded.device;
}

Bandwidth BandwidthOf(const Recorded& recorded, const Setup& setup) {
  if (setup.machine && setup.machine->link_bytes_per_s > 0) {
    const double link = setup.machine->link_bytes_per_s;
    return {link * kOfLinkAtLeast, link, link};
  }
  constexpr double kPcie3 = 15.75;  // of devices that the table does not have
  const roofline::Device* device = setup.device != nullptr ? setup.device : recorded.device;
  const double bus = 1e9 * (device != nullptr ? device->bus_gb : kPcie3);
  return {bus * kOfBusAtLeast, bus * kOfBus, bus};
}

// What a device takes for a step, were it always fed: with what of it is whose.
struct Consumed {
  Prediction step;
  double device_ns = 0, host_ns = 0, copies_ns = 0, link_ns = 0,
         loader_ns = 0;     // what the step would lose without each
  bool told_apart = false;  // device and host
};

Prediction Scaled(const Prediction& step, double factor) {
  return {step.expected_ns * factor, step.cautious_ns * factor, step.hopeful_ns * factor};
}

Prediction Sum(const Prediction& a, const Prediction& b) {
  return {a.expected_ns + b.expected_ns, a.cautious_ns + b.cautious_ns, a.hopeful_ns + b.hopeful_ns};
}

// What the step of this graph would lose were all such work done in no time.
template <typename Is>
double LostWithout(StepGraph graph, Is is) {
  const double before_ns = replay::StepNs(graph);
  for (StepGraph::Node& node : graph.nodes) {
    if (is(node)) node.duration_ns = node.wait_ns = 0;
  }
  return std::max(0.0, before_ns - replay::StepNs(graph));
}

bool IsOfDevice(const StepGraph::Node& node) {
  return node.work == Work::kDevice && (record::Bit(node.lane) & record::kComputeLanes) != 0;
}
bool IsCopy(const StepGraph::Node& node) {
  return node.work == Work::kDevice && (record::Bit(node.lane) & record::kCopyLanes) != 0;
}
bool IsOfHost(const StepGraph::Node& node) {
  return node.work == Work::kHost || node.work == Work::kLaunch || node.work == Work::kBlockingCall ||
         node.work == Work::kAway || node.work == Work::kUnexplained;
}

void TellApart(const StepGraph& graph, double scale, Consumed& consumed) {
  consumed.device_ns = scale * LostWithout(graph, IsOfDevice);
  consumed.host_ns = scale * LostWithout(graph, IsOfHost);
  consumed.copies_ns = scale * LostWithout(graph, IsCopy);
  consumed.link_ns = scale * LostWithout(graph, replay::IsCollective);
  consumed.loader_ns =
      scale * LostWithout(graph, [](const auto& node) { return node.work == Work::kLoader; });
  consumed.told_apart = true;
}

// What the recorded devices' links reached; 0 where that is not known.
double ReachedBandwidth(const Recorded& recorded) {
  if (recorded.gpus == 1 || recorded.graphs.empty()) return 0;
  const double own_ns = replay::PerStepNs(recorded.graphs.front(), replay::IsOfGradients);
  return own_ns > 0 ? RingPart(recorded.gpus) * recorded.gradient_bytes / own_ns * 1e9 : 0;
}

double NamedLink(const Setup& setup) { return setup.machine ? setup.machine->link_bytes_per_s : 0; }

using Factor = std::array<double, 3>;  // by outlook

// A machine of the file with the recorded device may be the recorded one: then what its links reached is known, though
// they are said to carry more. At best it is another one, with links that reach all of that.
Factor OwnLinkFactor(const Recorded& recorded, const Setup& setup, double part, const Factor& by_file) {
  const double open = setup.gpus == recorded.gpus ? 1 : kOtherNumber;
  if (!MayHaveTheRecordedLinks(recorded, setup)) return by_file;
  return {part * open, part, std::min(part / open, by_file[2])};
}

// How many times as long recorded collectives take there.
Factor LinkFactor(const Recorded& recorded, const Setup& setup) {
  if (recorded.gpus == 1) return {1, 1, 1};
  const double part = RingPart(setup.gpus) / RingPart(recorded.gpus);
  if (part == 0) return {0, 0, 0};
  const double reached = ReachedBandwidth(recorded);
  Factor by_file = {part * kUnknownLink, part, part / kUnknownLink};
  const bool known = NamedLink(setup) > 0 && reached > 0;
  const Bandwidth there = BandwidthOf(recorded, setup);
  if (known) by_file = {part * reached / there[0], part * reached / there[1], part * reached / there[2]};
  if (!IsOwnDevice(recorded, setup)) return by_file;
  return OwnLinkFactor(recorded, setup, part, known ? by_file : Factor{part, part, part});
}

bool ExchangesRecorded(const Recorded& recorded) {
  return recorded.gpus > 1 && !recorded.graphs.empty() &&
         replay::PerStepNs(recorded.graphs.front(), replay::IsOfGradients) > 0;
}

double ConsumeNs(const Recorded& recorded) {
  if (!recorded.loader)
    return recorded.step_ns - (recorded.graphs.empty() || recorded.of_window ? recorded.wait_ns : 0);
  const auto& all_ns = recorded.loader->consume_ns;
  return std::accumulate(all_ns.begin(), all_ns.end(), 0.0) / static_cast<double>(all_ns.size());
}

// By the graph of its steps. A trace's loader stays in it where the training thread loads by itself, for that is its
// host's work; a wait for workers is none of the device's.
Consumed ByGraph(const Recorded& recorded, const Setup& setup) {
  std::vector<const StepGraph*> room;
  const replay::Ranks ranks = recorded.ranks(room);
  const OtherLink link(LinkFactor(recorded, setup));
  std::vector<const Change*> fed, changes;
  const StepGraph& first = recorded.graphs.front();
  if (recorded.of_window || !first.loads_inline) fed.push_back(replay::Workers());
  changes = fed;
  const bool same_links = LinkFactor(recorded, setup) == Factor{1, 1, 1};
  if (ExchangesRecorded(recorded) && !same_links) changes.push_back(&link);
  if (!IsOwnDevice(recorded, setup)) changes.push_back(replay::OtherDevice(setup.device->name));
  const double fed_ns = replay::Predict(ranks, fed).expected_ns;
  const double scale = fed_ns > 0 ? (recorded.of_window ? ConsumeNs(recorded) : fed_ns) / fed_ns : 1;
  Consumed consumed;
  if (changes.size() == fed.size()) {
    consumed.step = {fed_ns * scale, fed_ns * scale * recorded.spread.high,
                     fed_ns * scale * recorded.spread.low};
  } else {
    consumed.step = Scaled(replay::Predict(ranks, changes), scale);
  }
  TellApart(replay::Changed(first, changes), scale, consumed);
  consumed.step.expected_ns *= recorded.profiler_expected;
  consumed.step.hopeful_ns *= recorded.profiler_low;
  return consumed;
}

// Of a run whose device was not recorded: its own device alone.
Consumed ByClock(const Recorded& recorded, const Setup& setup) {
  const double alone_ns = std::max(0.0, ConsumeNs(recorded) - recorded.comm_ns);
  Consumed consumed;
  consumed.step = {alone_ns, alone_ns * recorded.spread.high, alone_ns * recorded.spread.low};
  if (recorded.gpus == 1 || setup.gpus == 1) return consumed;
  const double part = RingPart(setup.gpus) / RingPart(recorded.gpus);
  const double open = setup.gpus == recorded.gpus ? 1 : kUnknownLink;
  const Prediction exchange = {recorded.comm_ns * part, recorded.comm_ns * part * open,
                               recorded.comm_ns * part / open};
  consumed.step = Sum(consumed.step, exchange);
  consumed.link_ns = exchange.expected_ns;
  return consumed;
}

// Gradients that nobody exchanged when it was recorded.
void AddExchange(const Recorded& recorded, const Setup& setup, Consumed& consumed) {
  if (recorded.gpus > 1 || setup.gpus == 1 || !recorded.trains) return;
  const double ratio = consumed.step.expected_ns / std::max(1.0, ConsumeNs(recorded));
  double backward_ns = recorded.backward_ns * ratio;
  if (backward_ns == 0 && !recorded.graphs.empty()) {
    backward_ns = replay::PerStepNs(recorded.graphs.front(),
                                    [](const StepGraph::Node& node) {
                                      return IsOfDevice(node) && replay::IsOfBackward(node.phase);
                                    }) *
                  ratio;
  }
  const Prediction exposed =
      ExposedNs(recorded.gradient_bytes, setup.gpus, BandwidthOf(recorded, setup), backward_ns);
  consumed.step = Sum(consumed.step, exposed);
  consumed.link_ns += exposed.expected_ns;
}

Consumed ConsumeOn(const Recorded& recorded, const Setup& setup) {
  Consumed consumed = recorded.graphs.empty() ? ByClock(recorded, setup) : ByGraph(recorded, setup);
  AddExchange(recorded, setup, consumed);
  return consumed;
}

Pipe BindingOf(const Consumed& consumed) {
  struct Part {
    Pipe pipe;
    double ns;
  };
  const double step_ns = consumed.step.expected_ns;
  const double unexplained_ns = consumed.told_apart ? 0 : step_ns - consumed.link_ns;
  const auto parts = {Part{Pipe::kDevice, consumed.device_ns}, Part{Pipe::kHost, consumed.host_ns},
                      Part{Pipe::kCopies, consumed.copies_ns}, Part{Pipe::kLink, consumed.link_ns},
                      Part{Pipe::kLoader, consumed.loader_ns}, Part{Pipe::kTraining, unexplained_ns}};
  return std::ranges::max(parts, {}, &Part::ns).pipe;
}

constexpr char kOthers[] = "other devices";

// Why any other device than the recorded one is not told; nothing if it is.
std::optional<NotTold> WhyNoOther(const Recorded& recorded) {
  const std::string with_window = "fullbore run --windows 4@100 -- " + recorded.command;
  if (recorded.device == nullptr) {
    const std::string why = recorded.device_name.empty()
                                ? "the recorded device is not known"
                                : fmt::format("what a {} can do is not known", recorded.device_name);
    return NotTold{kOthers, why + ": record it on one that fullbore explain --help lists", with_window};
  }
  if (recorded.graphs.empty()) return NotTold{kOthers, "what the device did was not recorded", with_window};
  if (recorded.unknown_work <= kMostUnknown) return std::nullopt;
  return NotTold{kOthers,
                 fmt::format("what {} of the device's work had to do was not recorded (no shapes)",
                             FormatPercent(recorded.unknown_work)),
                 "torch.profiler.profile(record_shapes=True), or " + with_window};
}

// Why this setup is not told; nothing if it is.
std::optional<NotTold> WhyNot(const Recorded& recorded, const Setup& setup) {
  const std::string run = "fullbore run -- " + recorded.command;
  const std::string with_window = "fullbore run --windows 4@100 -- " + recorded.command;
  if (!recorded.refusal.empty()) return NotTold{"anything", recorded.refusal, ""};
  if (recorded.on_cpu) return NotTold{"devices", "its steps ran on the CPU", with_window};
  if (!IsOwnDevice(recorded, setup)) {
    if (auto unknown = WhyNoOther(recorded)) return unknown;
  }
  if (setup.gpus > 1 && recorded.gpus == 1 && recorded.trains && recorded.gradient_bytes <= 0)
    return NotTold{"more than one device", "how many bytes of gradients would be exchanged was not recorded",
                   run};
  return std::nullopt;
}

void TakeMemory(const Recorded& recorded, Estimate& estimate) {
  const Setup& setup = estimate.setup;
  const double there = setup.machine             ? setup.machine->device_memory_bytes
                       : setup.device != nullptr ? setup.device->memory_gb * 1e9
                                                 : 0;
  if (!recorded.device_memory_bytes || there <= 0) return;
  estimate.memory_filled = *recorded.device_memory_bytes / there;
  // A data sheet's gigabytes are rounded: the recorded device has what it was seen to fill.
  const bool has_it = IsOwnDevice(recorded, setup) && !(setup.machine && setup.machine->names_device_memory);
  if (*estimate.memory_filled <= 1 || has_it) return;
  estimate.why_not =
      fmt::format("does not fit: {} of {}", FormatBytes(*recorded.device_memory_bytes), FormatBytes(there));
}

void TakeNeeds(const Recorded& recorded, double consume_ns, Estimate& estimate) {
  const int64_t gpus = estimate.setup.gpus;
  if (recorded.loader) estimate.cores_needed = CoresToFeed(recorded, consume_ns, gpus, estimate.cores);
  if (recorded.trainer_bytes) {
    const double workers = static_cast<double>(estimate.workers) * recorded.worker_bytes.value_or(0);
    const double needed = static_cast<double>(gpus) * (*recorded.trainer_bytes + workers);
    const double there = estimate.setup.machine ? estimate.setup.machine->memory_bytes : 0;
    estimate.host_bytes_needed = needed;
    if (there > 0 && needed > there && estimate.why_not.empty())
      estimate.why_not = fmt::format("its host has {} for {}", FormatBytes(there), FormatBytes(needed));
  }
  if (recorded.read_bytes_per_sample && recorded.batch > 0)
    estimate.read_bytes_per_s = *recorded.read_bytes_per_sample * estimate.per_s.expected;
}

// A trace whose training waited for its workers shows all that these deliver, on the cores that they had.
void HoldToWaits(const Recorded& recorded, Estimate& estimate) {
  const bool waited = recorded.wait_ns > kBinds * recorded.step_ns;
  const bool inline_in_graph =
      !recorded.graphs.empty() && recorded.graphs.front().loads_inline && !recorded.of_window;
  if (!waited || inline_in_graph) return;
  const double share = static_cast<double>(estimate.setup.gpus) / static_cast<double>(recorded.gpus);
  const double least_ns = recorded.step_ns * share;
  estimate.step.hopeful_ns = std::max(estimate.step.hopeful_ns, least_ns * recorded.spread.low);
  if (least_ns <= estimate.step.expected_ns) return;
  estimate.step.expected_ns = least_ns;
  estimate.step.cautious_ns = std::max(estimate.step.cautious_ns, least_ns * recorded.spread.high);
  estimate.binds = Pipe::kLoader;
}

void TakeDevice(const Recorded& recorded, Estimate& estimate) {
  if (recorded.graphs.empty()) return;
  const StepGraph& graph = recorded.graphs.front();
  const double now_ns = replay::PerStepNs(graph, IsOfDevice);
  estimate.device_ns = {now_ns, now_ns, now_ns};
  if (IsOwnDevice(recorded, estimate.setup)) return;
  estimate.classes = replay::TimesByClass(graph, *replay::OtherDevice(estimate.setup.device->name));
  estimate.device_ns = {};
  for (const replay::ClassTime& time : estimate.classes) {
    if ((record::Bit(time.lane) & record::kComputeLanes) == 0) continue;
    estimate.device_ns.expected += time.then.expected_ns;
    estimate.device_ns.low += time.then.hopeful_ns;
    estimate.device_ns.high += time.then.cautious_ns;
  }
}

}  // namespace

bool MayHaveTheRecordedLinks(const Recorded& recorded, const Setup& setup) {
  return NamedLink(setup) <= 0 || ReachedBandwidth(recorded) <= NamedLink(setup);
}

std::string_view Name(Pipe pipe) {
  switch (pipe) {
    case Pipe::kDevice:
      return "device";
    case Pipe::kHost:
      return "host";
    case Pipe::kTraining:
      return "training";
    case Pipe::kCopies:
      return "copies";
    case Pipe::kLink:
      return "link";
    case Pipe::kLoader:
      return "loader";
    case Pipe::kCores:
      return "cores";
  }
  return "";
}

Estimate EstimateOn(const Recorded& recorded, const Setup& setup) {
  Estimate estimate;
  estimate.setup = setup;
  estimate.cores = setup.machine ? Cores{setup.machine->cores, setup.machine->threads_per_core}
                                 : recorded.CoresWith(setup.gpus);
  if (const auto unknown = WhyNot(recorded, setup)) {
    estimate.why_not = unknown->why;
    estimate.not_told = unknown->what;
    estimate.would_tell = unknown->command;
    return estimate;
  }
  TakeMemory(recorded, estimate);
  if (!estimate.why_not.empty()) return estimate;
  const Consumed consumed = ConsumeOn(recorded, setup);
  estimate.step = consumed.step;
  estimate.binds = BindingOf(consumed);
  if (recorded.loader) {
    const Fed fed = Feed(recorded, consumed.step, setup.gpus, estimate.cores);
    estimate.step = fed.step;
    estimate.workers = fed.workers;
    if (fed.waits > kBinds) estimate.binds = fed.cores_bind ? Pipe::kCores : Pipe::kLoader;
  } else {
    HoldToWaits(recorded, estimate);
  }
  const double done = recorded.PerStep() * static_cast<double>(setup.gpus) * 1e9;
  estimate.per_s = {done / std::max(1.0, estimate.step.cautious_ns),
                    done / std::max(1.0, estimate.step.expected_ns),
                    done / std::max(1.0, estimate.step.hopeful_ns)};
  TakeDevice(recorded, estimate);
  TakeNeeds(recorded, consumed.step.expected_ns, estimate);
  return estimate;
}

}  // namespace fullbore::plan
