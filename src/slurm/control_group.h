// Out of the control groups of a step, into which Slurm may have put the process that starts the recorder: what the
// recorder takes is not the step's, the step's end is not the recorder's, and Slurm finds its groups empty when it removes
// them. Goes by the place that Slurm has for all its groups, never by their names (job_12, or since Slurm 26.05 a SLUID).
//
// Nothing but system calls, for the child of a process with threads.
#pragma once

#include <limits.h>
#include <stdbool.h>

// Of a line of /proc/self/cgroup the file to write a pid into, so that the process is outside; false where it is already.
//   6:freezer:/slurm_node/uid_5/job_1/step_0                     /sys/fs/cgroup/freezer/cgroup.procs
//   0::/system.slice/slurmstepd.scope/job_1/step_0/slurm         .../slurmstepd.scope/system/cgroup.procs
bool PlaceOutside(const char* line, char path[PATH_MAX]);

// As root.
void LeaveControlGroups(void);
