// The devices of this node, and who holds them: NVML's readings and lists of processes, joined with what the processes
// belong to, and followed over time.
//
// Called by one thread at a time, which NVML may hold for as long as it likes: see Node.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/devices.h"
#include "agent/processes.h"
#include "measure/probe/nvml/device_users.h"
#include "measure/probe/nvml/nvml_probes.h"
#include "record/openmetrics.h"

namespace fullbore::agent {

using Labels = record::OpenMetrics::LabelList;

struct ShownHold {
  Labels labels;  // of who holds it: kind, user, job_id, ...
  Hold hold;
};

struct Strays {  // processes on a device that no longer belong there
  std::string user;
  const char* reason = "";  // "no_job": others hold it by a job or pod, this one by none; "step_over"
  int64_t processes = 0;
};

struct ShownDevice {
  Labels labels;  // gpu, and of an instance mig
  std::string name, uuid;
  bool lost = false;
  bool users_known = false;  // in the last look
  std::vector<ShownHold> holds;
  std::vector<Strays> strays;
};

// Plain values, made after each look.
struct DeviceView {
  int64_t t_ns = 0;
  bool has_nvml = false;
  std::map<std::string, std::string> facts;
  std::vector<ShownDevice> devices;
  std::map<record::SeriesKey, double> readings;
  std::map<std::pair<std::string, int64_t>, int64_t> xids;  // how often, by GPU and number
  Sight sight;
  int64_t unseen_processes = 0;  // on devices, of which we cannot see whose they are
};

class DeviceWatch {
 public:
  // `say` is told each message once: what NVML lacks, a GPU that is lost, an Xid.
  DeviceWatch(const std::string& root, NameOfUser name_of_user, std::function<void(const std::string&)> say);
  ~DeviceWatch();

  // Once a second: how busy the devices are; every fifth time, everything else.
  void Look(int64_t now_ns);
  DeviceView View() const;

 private:
  class Readings;
  struct Watched {
    probe::nvml::DeviceUsers users;
    std::vector<Strays> strays;
    bool users_known = false;
  };

  bool Open(int64_t now_ns);
  struct Seen;
  void LookAtUsers(int64_t now_ns);
  std::optional<std::vector<Use>> UsesOf(size_t place, const Device& before);
  Seen Gather(const std::vector<probe::nvml::DeviceUser>& users, std::optional<bool> worked);
  std::vector<Strays> StraysIn(const Seen& seen) const;
  void AddIdleHolders(const probe::nvml::Gpu& gpu, const Device& before, std::optional<bool> worked,
                      std::map<Holder, Use>& uses) const;
  Labels LabelsOf(const Holder& holder) const;

  Processes processes_;
  std::unique_ptr<Readings> readings_;
  std::shared_ptr<probe::nvml::Session> session_;
  std::unique_ptr<probe::nvml::FastProbe> fast_;
  std::unique_ptr<probe::nvml::SlowProbe> slow_;
  std::vector<Watched> watched_;              // as session_->gpus()
  std::map<record::Labels, Device> devices_;  // by the labels of the GPU: they outlive a session
  std::optional<int64_t> opened_ns_;
  bool has_nvml_ = false;
  int64_t looks_ = 0, looked_ns_ = 0, unseen_ = 0;
};

}  // namespace fullbore::agent
