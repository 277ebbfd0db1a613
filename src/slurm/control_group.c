#define _GNU_SOURCE

#include "slurm/control_group.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const char kMount[] = "/sys/fs/cgroup", kProcesses[] = "/cgroup.procs";
static const char kScope[] =
    "slurmstepd.scope/";  // v2; with several slurmd on a node the name has theirs in front

static bool Append(char path[PATH_MAX], size_t* used, const char* text, size_t bytes) {
  if (*used + bytes >= PATH_MAX) return false;
  memcpy(path + *used, text, bytes);
  *used += bytes;
  path[*used] = '\0';
  return true;
}

// v2: no process may be in the scope itself, and Slurm keeps one of its own in "system".
static bool OutsideOfScope(const char* group, char path[PATH_MAX]) {
  static const char kBeside[] = "system";
  const char* scope = strstr(group, kScope);
  if (scope == NULL) return false;
  const size_t kept = (size_t)(scope - group) + sizeof kScope - 1;
  if (strncmp(group + kept, kBeside, sizeof kBeside - 1) == 0) return false;
  size_t used = 0;
  return Append(path, &used, kMount, sizeof kMount - 1) && Append(path, &used, group, kept) &&
         Append(path, &used, kBeside, sizeof kBeside - 1) &&
         Append(path, &used, kProcesses, sizeof kProcesses - 1);
}

// v1: the top of the controller's hierarchy.
static bool OutsideOfTree(const char* controllers, size_t length, char path[PATH_MAX]) {
  size_t used = 0;
  return Append(path, &used, kMount, sizeof kMount - 1) && Append(path, &used, "/", 1) &&
         Append(path, &used, controllers, length) && Append(path, &used, kProcesses, sizeof kProcesses - 1);
}

bool PlaceOutside(const char* line, char path[PATH_MAX]) {
  static const char kTree[] = "/slurm";
  const char* controllers = strchr(line, ':');
  const char* group = controllers == NULL ? NULL : strchr(++controllers, ':');
  if (group == NULL) return false;
  const size_t length = (size_t)(group++ - controllers);
  if (length == 0) return OutsideOfScope(group, path);
  return strncmp(group, kTree, sizeof kTree - 1) == 0 && OutsideOfTree(controllers, length, path);
}

static void Enter(const char* path) {
  const int processes = open(path, O_WRONLY | O_CLOEXEC);
  if (processes < 0) return;
  const ssize_t written = write(processes, "0", 1);
  (void)written;  // then we stay
  close(processes);
}

void LeaveControlGroups(void) {
  char text[8192], path[PATH_MAX];
  const int groups = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = groups < 0 ? -1 : read(groups, text, sizeof text - 1);
  if (groups >= 0) close(groups);
  if (bytes <= 0) return;
  text[bytes] = '\0';
  for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = '\0';
    if (PlaceOutside(line, path)) Enter(path);
  }
}
