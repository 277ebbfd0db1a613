#include "agent/node.h"

#include <unistd.h>

#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "measure/probe/process/process_stat.h"
#include "measure/probe/registry.h"

namespace fullbore::agent {

namespace {

constexpr int64_t kTicksToHost = 5;
constexpr int64_t kFirstLookNs = kNsPerSecond;  // the first answer shall have the devices, too
constexpr int64_t kHangsNs = 20 * kNsPerSecond;

Self SelfNow(Self self) {
  const Result<std::string> text = ReadFile("/proc/self/stat");
  const auto stat = text ? probe::ParseProcessStat(*text) : std::nullopt;
  if (!stat) return self;
  self.cpu_s = static_cast<double>(stat->cpu_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  self.resident_bytes =
      static_cast<double>(stat->resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return self;
}

}  // namespace

class Node::HostReadings : public probe::Sink {
 public:
  HostReadings(NodeView& view, const agent::Say& say) : view_(view), say_(say) {}
  void Read(const record::SeriesKey& key, int64_t, double value) override { view_.readings[key] = value; }
  void Say(record::Severity, std::string_view source, std::string_view text) override {
    say_(std::string(source) + ": " + std::string(text));
  }
  void SetMachineFact(std::string_view key, std::string_view value) override {
    view_.facts[std::string(key)] = value;
  }

 private:
  NodeView& view_;
  const agent::Say& say_;
};

struct Node::Devices {
  Devices(const std::string& root, const agent::Say& say) : watch(root, UserNames(), say) {}

  DeviceWatch watch;
  DeviceView view;  // written by the thread, read when it is done
};

Node::Node(const std::string& root, std::string version, Say say)
    : say_(std::move(say)),
      host_(std::make_unique<HostReadings>(view_, say_)),
      probes_(probe::MakeHostProbes({root, 0, "", false})),
      devices_(std::make_shared<Devices>(root, say_)),
      thread_(kHangsNs) {
  view_.self.version = std::move(version);
  view_.self.start_unix_s = static_cast<double>(WallNs()) / 1e9;
}

Node::~Node() = default;

void Node::Tick(int64_t now_ns) {
  if (ticks_++ % kTicksToHost == 0) {
    view_.readings.clear();
    for (const auto& probe : probes_) probe->Sample(now_ns, *host_);
  }
  LookAtDevices(now_ns);
  SayWhatIsMissing();
}

void Node::LookAtDevices(int64_t now_ns) {
  const bool is_first = !view_.devices && !begun_;
  if (!Take(thread_.Poll())) return;
  begun_ = thread_.Begin([devices = devices_, now_ns] {
    devices->watch.Look(now_ns);
    devices->view = devices->watch.View();
  });
  if (is_first) Take(thread_.Poll(kFirstLookNs));
}

// Whether the thread is free for another look.
bool Node::Take(SideThread::State state) {
  if (state == SideThread::State::kGivenUp)
    say_(
        "NVML has not answered for 20 s: a GPU hangs. Devices are not shown until it does; look for Xid messages in "
        "dmesg, and drain the node");
  if (state == SideThread::State::kDone) view_.devices = devices_->view;
  return state == SideThread::State::kDone || state == SideThread::State::kFree;
}

// Each is said once; a driver or a job may come later.
void Node::SayWhatIsMissing() {
  if (!view_.devices) return;
  const auto say_once = [this](bool is_so, bool& said, const char* text) {
    if (is_so && !std::exchange(said, true)) say_(text);
  };
  const Sight& sight = view_.devices->sight;
  say_once(
      !view_.devices->has_nvml, said_no_nvml_,
      "no GPUs can be read here (NVML is missing, or its driver not loaded): only the host's readings are given. "
      "It is tried again every minute");
  say_once(
      sight.processes == false, said_no_processes_,
      "processes of others cannot be seen (/proc is mounted with hidepid, or this is a container without the "
      "host's pids): whose devices are is not known. Give it the group of hidepid's gid=, or hostPID");
  say_once(
      sight.environments == false, said_no_environments_,
      "environments of others cannot be read: a device that a job was given and never used is taken for free. It "
      "takes CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH (deploy/fullbore-agent.service) or root");
}

std::string Node::Page(int64_t now_ns) const {
  NodeView view = view_;
  view.now_ns = now_ns;
  view.self = SelfNow(view.self);
  return MetricsPage(view);
}

}  // namespace fullbore::agent
