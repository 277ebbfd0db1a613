// The node as the agent knows it: the host's readings, and those of its devices, which come from a thread beside it.
// NVML may hang for ever, for one GPU that is lost; then the host's are still answered, and the devices' are absent.
//
// Owned and called by one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/page.h"
#include "base/side_thread.h"
#include "measure/probe/probe.h"

namespace fullbore::agent {

using Say = std::function<void(const std::string& line)>;

class Node {
 public:
  // `root`: "" on a real machine. `say` is told each message once, from either thread.
  Node(const std::string& root, std::string version, Say say);
  ~Node();

  void Tick(int64_t now_ns);  // once a second
  std::string Page(int64_t now_ns) const;

 private:
  class HostReadings;
  struct Devices;

  void LookAtDevices(int64_t now_ns);
  bool Take(SideThread::State state);
  void SayWhatIsMissing();

  const Say say_;
  NodeView view_;
  std::unique_ptr<HostReadings> host_;
  std::vector<std::unique_ptr<probe::Probe>> probes_;
  std::shared_ptr<Devices> devices_;  // shared with the thread, which may outlive us
  SideThread thread_;
  int64_t ticks_ = 0;
  bool begun_ = false;  // a look at the devices, ever
  bool said_no_nvml_ = false, said_no_processes_ = false, said_no_environments_ = false;
};

}  // namespace fullbore::agent
