// libfullbore_slurm.so: records the steps of Slurm's jobs without a word in their scripts (docs/fleet.md).
//
// slurmstepd loads it for each step on each node. It starts one recorder (recorder.h); once the job's working directory is
// known it tells it what is going to run, and waits at most `wait_ms` for what the environment of the tasks needs. From
// then on it only says how tasks begin and end. The recorder is the user's, and not in the job's control group: what it
// takes would count there, and the end of the tasks would end it before it has written the run. Nothing here ever fails a
// job: each function returns success, and what is wrong is said in slurmd's log.
//
// srun, sbatch and salloc load it for the option --fullbore alone.
#define _GNU_SOURCE

#include <inttypes.h>
#include <pwd.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slurm/recorder.h"
#include "slurm/settings.h"

SPANK_PLUGIN(fullbore, 1)

enum { kMostVariables = 512, kMostVariableBytes = 4096, kMostWords = 1000 };

// Whose choice the steps of a job follow, and what a user may set for all of his.
static const char kModeVariable[] = "SLURM_FULLBORE";

static struct Settings settings;
static bool usable = false;
static enum Mode chosen = kModeUnset;  // by --fullbore
static int recorder = -1;              // the socket; -1 without one

static int TakeOption(int value, const char* text, int remote) {
  (void)value;
  chosen = ModeOf(text);
  if (chosen != kModeUnset || remote) return 0;
  slurm_error("--fullbore=%s is not off, on or windows", text);
  return -1;
}

static struct spank_option option = {
    "fullbore",
    "off|on|windows",
    "Record the job with Fullbore; windows: also a few steps under PyTorch's own profiler",
    2,
    0,
    TakeOption};

int slurm_spank_init(spank_t spank, int count, char* words[]) {
  const char* wrong = ReadSettings(count, words, &settings);
  usable = wrong == NULL;
  if (!usable) slurm_error("fullbore: '%s' in plugstack.conf is not understood: nothing is recorded", wrong);
  if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
    slurm_error("fullbore: cannot register --fullbore");
  return ESPANK_SUCCESS;
}

// "0", "batch", "interactive", or NULL where a step runs nothing of the job's own.
static const char* StepId(spank_t spank, char text[16]) {
  uint32_t step = 0;
  if (spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS) return NULL;
  if (step == SLURM_BATCH_SCRIPT) return "batch";
  if (step == SLURM_INTERACTIVE_STEP) return "interactive";
  if (step > SLURM_MAX_NORMAL_STEP_ID) return NULL;
  snprintf(text, 16, "%" PRIu32, step);
  return text;
}

static enum Mode ModeOfStep(spank_t spank) {
  if (!usable) return kModeOff;
  if (chosen != kModeUnset) return chosen;
  char text[16];
  if (spank_getenv(spank, kModeVariable, text, sizeof text) != ESPANK_SUCCESS || ModeOf(text) == kModeUnset)
    return settings.mode;
  return ModeOf(text);
}

// What a recorder may have of the job's environment, where secrets may be, and what would have it run code of the user's
// outside of the job's limits (FULLBORE_NVML names a library). Nothing that is of one task or node alone: a script hands
// its own on to the steps that it starts on others.
static bool IsForRecorder(const char* variable) {
  static const char* const kBeginnings[] = {"SLURM_JOB_",
                                            "SLURM_STEP_NUM_TASKS=",
                                            "SLURM_RESTART_COUNT=",
                                            "SLURM_GPUS_ON_NODE=",
                                            "SLURM_CPUS_ON_NODE=",
                                            "SLURM_MEM_PER_NODE=",
                                            "FULLBORE_RUN=",
                                            "FULLBORE_CHANNEL=",
                                            "FULLBORE_CHANNEL_DISK=",
                                            "FULLBORE_SETTINGS=",
                                            "FULLBORE_WINDOWS=",
                                            "TMPDIR=",
                                            "TZ="};
  static const char kPath[] = "PYTHONPATH=";  // of modules and package managers some have many kilobytes
  if (strncmp(variable, kPath, sizeof kPath - 1) == 0) return true;
  for (size_t i = 0; i < sizeof kBeginnings / sizeof *kBeginnings; ++i) {
    if (strncmp(variable, kBeginnings[i], strlen(kBeginnings[i])) == 0)
      return strlen(variable) < kMostVariableBytes;
  }
  return false;
}

static void AddVariables(spank_t spank, char* variables[], int* count, int most) {
  char** all = NULL;
  if (spank_get_item(spank, S_JOB_ENV, &all) != ESPANK_SUCCESS || all == NULL) return;
  for (; *all != NULL && *count < most; ++all) {
    if (IsForRecorder(*all)) variables[(*count)++] = *all;
  }
}

// The directory of this user's runs, if the site has one for all.
static bool HomeOf(uid_t user, char home[PATH_MAX]) {
  struct passwd entry, *found = NULL;
  char buffer[4096];
  if (getpwuid_r(user, &entry, buffer, sizeof buffer, &found) != 0 || found == NULL) return false;
  if (strchr(entry.pw_name, '/') != NULL || entry.pw_name[0] == '.') return false;
  return snprintf(home, PATH_MAX, "%s/%s", settings.directory, entry.pw_name) < PATH_MAX;
}

static bool PersonOf(spank_t spank, struct Person* person) {
  return spank_get_item(spank, S_JOB_UID, &person->user) == ESPANK_SUCCESS &&
         spank_get_item(spank, S_JOB_GID, &person->group) == ESPANK_SUCCESS &&
         spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &person->groups, &person->group_count) ==
             ESPANK_SUCCESS;
}

// What tells the recorder which step it is of. The texts are kept where they are.
static bool NameStep(spank_t spank, char* variables[], int* count) {
  static char job[40], step[40], nodes[40];
  char number[16];
  const char* id = StepId(spank, number);
  uint32_t job_id = 0, node_count = 1;
  if (id == NULL || spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS) return false;
  if (id == number) (void)spank_get_item(spank, S_JOB_NNODES, &node_count);  // a script runs on one of them
  snprintf(job, sizeof job, "SLURM_JOB_ID=%" PRIu32, job_id);
  snprintf(step, sizeof step, "SLURM_STEP_ID=%s", id);
  snprintf(nodes, sizeof nodes, "SLURM_STEP_NUM_NODES=%" PRIu32, node_count);
  variables[(*count)++] = job;
  variables[(*count)++] = step;
  variables[(*count)++] = nodes;
  return true;
}

// `home` is empty where the runs lie below the working directory.
static void Start(spank_t spank, enum Mode mode, char* home) {
  char* variables[kMostVariables + 1] = {"PATH=/usr/bin:/bin"};
  char* words[] = {settings.binary, "run", "--started-by", "3", NULL, NULL, NULL, NULL, NULL};
  struct Launch launch = {.words = words, .environment = variables, .home = *home != '\0' ? home : NULL};
  int used = 1, at = 4;
  if (!NameStep(spank, variables, &used) || !PersonOf(spank, &launch.person)) return;
  AddVariables(spank, variables, &used, kMostVariables);
  if (*home != '\0') words[at++] = "--output", words[at++] = home;
  if (mode == kModeOn) words[at++] = "--windows", words[at] = "off";
  recorder = StartRecorder(&launch);
  if (recorder < 0) slurm_info("fullbore: no recorder could be started: the step runs unrecorded");
}

// A script that was submitted by a recorded one begins a job of its own, although it has the other's environment.
static void LeaveOuterRun(spank_t spank) {
  char number[16];
  const char* id = StepId(spank, number);
  if (id == NULL || id == number) return;  // a step of the job
  (void)spank_unsetenv(spank, "FULLBORE_RUN");
  (void)spank_unsetenv(spank, "FULLBORE_CHANNEL");
  (void)spank_unsetenv(spank, "FULLBORE_CHANNEL_DISK");
}

int slurm_spank_init_post_opt(spank_t spank, int count, char* words[]) {
  (void)count, (void)words;
  if (spank_remote(spank) != 1) return ESPANK_SUCCESS;
  LeaveOuterRun(spank);
  const enum Mode mode = ModeOfStep(spank);
  char home[PATH_MAX] = "";
  uid_t user = 0;
  if (mode == kModeOff || spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS) return ESPANK_SUCCESS;
  if (settings.directory[0] == '\0' || HomeOf(user, home)) Start(spank, mode, home);
  return ESPANK_SUCCESS;
}

// The user's process says it, and it goes into slurmd's log.
static const char* OneLine(char* text) {
  for (char* at = text; *at != '\0'; ++at) {
    if ((unsigned char)*at < ' ') *at = '?';
  }
  return text;
}

static void ForgetRecorder(const char* why) {
  slurm_info("fullbore: %s: the step runs unrecorded", why);
  close(recorder);
  recorder = -1;
}

// A batch script's own path is a copy in slurmd's folder: the job's name is what people call it.
static const char* CallScript(spank_t spank, char name[256]) {
  return spank_getenv(spank, "SLURM_JOB_NAME", name, 256) == ESPANK_SUCCESS && *name != '\0' ? name
                                                                                             : "script";
}

static void AddCommand(spank_t spank, struct Packet* packet) {
  char name[256];
  char** words = NULL;
  int count = 0;
  uint32_t step = 0;
  (void)spank_get_item(spank, S_JOB_ARGV, &count, &words);
  (void)spank_get_item(spank, S_JOB_STEPID, &step);
  const char* first = count > 0 ? words[0] : "unknown";
  AddText(packet, step == SLURM_BATCH_SCRIPT ? CallScript(spank, name) : first);
  for (int i = 1; i < count && i < kMostWords; ++i) AddText(packet, words[i]);
}

static bool Ask(spank_t spank, struct Packet* packet) {
  char directory[PATH_MAX], tasks[16];
  uint32_t here = 1;
  if (getcwd(directory, sizeof directory) == NULL) return false;
  (void)spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &here);
  snprintf(tasks, sizeof tasks, "%" PRIu32, here);
  StartPacket(packet, "begin");
  AddText(packet, tasks);
  AddText(packet, directory);
  AddCommand(spank, packet);
  return Say(recorder, packet);
}

// Whether the tasks still find all that the user has put into PYTHONPATH: the recorder's answer only puts more in front.
static bool KeepsPath(spank_t spank, const char* value) {
  static char own[sizeof((struct Packet*)NULL)->bytes];
  const spank_err_t error = spank_getenv(spank, "PYTHONPATH", own, sizeof own);
  if (error == ESPANK_ENV_NOEXIST) return true;
  const size_t length = strlen(value), wanted = error == ESPANK_SUCCESS ? strlen(own) : 0;
  return error == ESPANK_SUCCESS && length >= wanted && strcmp(value + length - wanted, own) == 0;
}

// Changes its texts.
static void SetEnvironment(spank_t spank, struct Packet* packet) {
  char* const end = packet->bytes + packet->used;
  for (char* text = packet->bytes; text < end; text += strlen(text) + 1) {
    char* value = strchr(text, '=');
    if (value == NULL) continue;
    *value = '\0';
    if (strcmp(text, "PYTHONPATH") != 0 || KeepsPath(spank, value + 1))
      (void)spank_setenv(spank, text, value + 1, 1);
    *value = ' ';  // so that its end is found again
  }
}

int slurm_spank_user_init(spank_t spank, int count, char* words[]) {
  (void)count, (void)words;
  static struct Packet packet;
  const long until_ms = NowMs() + settings.wait_ms;
  if (chosen != kModeUnset) (void)spank_setenv(spank, kModeVariable, NameOfMode(chosen), 1);
  if (recorder < 0) return ESPANK_SUCCESS;
  if (!Ask(spank, &packet) || !Hear(recorder, &packet, until_ms))
    ForgetRecorder("its recorder was not ready in time, or has ended");
  else if (strcmp(packet.bytes, "refused") == 0)
    ForgetRecorder(packet.used > sizeof "refused" ? OneLine(packet.bytes + sizeof "refused") : "refused");
  else
    SetEnvironment(spank, &packet);
  return ESPANK_SUCCESS;
}

// In the process of the task, with the environment that it will have.
int slurm_spank_task_init(spank_t spank, int count, char* words[]) {
  (void)count, (void)words;
  static struct Packet packet;
  int task = -1;
  if (recorder < 0 || spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS || task != 0)
    return ESPANK_SUCCESS;
  char pid[16], *variables[kMostVariables];
  int used = 0;
  snprintf(pid, sizeof pid, "%d", (int)getpid());
  AddVariables(spank, variables, &used, kMostVariables);
  StartPacket(&packet, "task");
  AddText(&packet, pid);
  for (int i = 0; i < used; ++i) AddText(&packet, variables[i]);
  (void)Say(recorder, &packet);
  return ESPANK_SUCCESS;
}

int slurm_spank_task_exit(spank_t spank, int count, char* words[]) {
  (void)count, (void)words;
  static struct Packet packet;
  char text[16];
  int status = 0;
  if (recorder < 0 || spank_get_item(spank, S_TASK_EXIT_STATUS, &status) != ESPANK_SUCCESS)
    return ESPANK_SUCCESS;
  snprintf(text, sizeof text, "%d", status);
  StartPacket(&packet, "exit");
  AddText(&packet, text);
  (void)Say(recorder, &packet);
  return ESPANK_SUCCESS;
}

int slurm_spank_exit(spank_t spank, int count, char* words[]) {
  (void)spank, (void)count, (void)words;
  if (recorder >= 0) close(recorder);
  recorder = -1;
  return ESPANK_SUCCESS;
}
