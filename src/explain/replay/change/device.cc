// The same program on another device.
#include <map>
#include <memory>
#include <mutex>

#include "explain/replay/change/changes.h"
#include "explain/roofline/other_device.h"

namespace fullbore::replay {
namespace {

using record::StepGraph;
using record::Work;
using roofline::Device;

class DeviceChange : public Change {
 public:
  explicit DeviceChange(const Device& to)
      : to_(to),
        id_(std::string(kDevicePrefix) + to.name),
        does_("the program runs on " + std::string(to.name)) {}
  std::string_view id() const override { return id_; }
  std::string_view does() const override { return does_; }
  std::string_view assumes() const override {
    return "the same kernels of the other device's libraries, a host as fast, links between ranks as fast, "
           "and enough memory";
  }
  Cost cost() const override { return Cost::kCode; }
  bool shows_classes() const override { return true; }
  std::optional<std::string> WhyNot(const StepGraph& graph) const override {
    const Device* from = roofline::DeviceMeant(graph.device);
    if (from == nullptr) return "what the recorded device can do is not known";
    if (from == &to_) return "it was recorded on this device";
    return std::nullopt;
  }
  double Apply(Outlook outlook, StepGraph& graph) const override {
    const Device* from = roofline::DeviceMeant(graph.device);
    if (from == nullptr) return 0;
    for (StepGraph::Node& node : graph.nodes) {
      if (node.work != Work::kDevice) continue;
      const roofline::OnAnother then = roofline::OnDevice(*from, to_, graph, node);
      node.duration_ns = static_cast<int64_t>(outlook == Outlook::kCautious  ? then.most_ns
                                              : outlook == Outlook::kHopeful ? then.least_ns
                                                                             : then.expected_ns);
    }
    graph.device = to_.name;
    graph.link_bytes_per_ns = to_.bus_gb;
    return 0;
  }

 private:
  const Device& to_;
  std::string id_, does_;
};

}  // namespace

const Change* OtherDevice(std::string_view name) {
  static std::mutex mutex;
  static std::map<const Device*, std::unique_ptr<DeviceChange>> changes;
  const Device* device = roofline::DeviceMeant(name);
  if (device == nullptr) return nullptr;
  const std::lock_guard lock(mutex);
  std::unique_ptr<DeviceChange>& change = changes[device];
  if (!change) change = std::make_unique<DeviceChange>(*device);
  return change.get();
}

std::string KnownDevices() { return roofline::NamesOfDevices(); }

}  // namespace fullbore::replay
