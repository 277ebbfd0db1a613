// Who a process belongs to, by its control groups: a Slurm job, a pod, a container, a user's session, a service. Pure.
//
//   Slurm       /slurm/uid_1000/job_123/step_0/task_0                            v1; slurm_NODE with several slurmd
//               /system.slice/slurmstepd.scope/job_123/step_0/user/task_0        v2; NODE_slurmstepd.scope
//               /system.slice/slurmstepd.scope/sG0VQ3J3AZ2K00/step_0/slurm       v2 since 26.05: the job's SLUID
//   Kubernetes  /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/cri-containerd-ID.scope
//               /kubepods/burstable/podUID/ID                                              cgroupfs
//   containers  /system.slice/docker-ID.scope, /docker/ID, /machine.slice/libpod-ID.scope
//   users       /user.slice/user-1000.slice/session-3.scope
//
// Parts are known by their own form and not by where they stand: seen from a container, a path begins with "/../..". But
// what lies below a user's slice is named by that user: no job and no pod is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fullbore::agent {

enum class Kind : uint8_t {
  kNone,
  kService,
  kSession,
  kContainer,
  kPod,
  kJob
};                            // the closest to a scheduler last
const char* Name(Kind kind);  // "none", "service", "session", "container", "pod", "job"

// What holds a device, as a key: two processes of the same job have the same. What does not apply is empty.
struct Holder {
  Kind kind = Kind::kNone;
  std::string job;              // Slurm's number, or its SLUID
  std::string pod_uid;          // "1f0c42a6-..."
  std::string container;        // the first 12 digits of its id
  std::string unit;             // "jupyterhub.service"
  std::optional<uint32_t> uid;  // whose session it is; of a service or of nothing, whose process

  auto operator<=>(const Holder&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
};

struct Membership {
  Holder holder;
  std::string step;          // of the job: "0", "batch", "extern"
  bool step_daemon = false;  // the slurmstepd that leads the step, rather than a task in it
  bool unified = false;      // v2: only there is the slurmstepd of each step among its processes
  bool of_user = false;      // it lies in a slice of a user's, who names what is in it
  bool removed = false;      // the group no longer exists
};

// `cgroup_text`: all of /proc/PID/cgroup. Of several hierarchies the one that says most counts.
Membership MembershipOf(std::string_view cgroup_text);

// "s" and 13 digits of Crockford's base 32, as Slurm prints it (src/common/sluid.c): "sG0VQ3J3AZ2K00".
bool IsSluid(std::string_view text);

// The job's number in the title that slurmstepd gives itself, "slurmstepd: [123.batch]": what names a job by its number
// where its group has its SLUID. Empty where it is none.
std::string JobInTitle(std::string_view title);

}  // namespace fullbore::agent
