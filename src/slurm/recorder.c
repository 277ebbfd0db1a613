#define _GNU_SOURCE

#include "slurm/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "slurm/control_group.h"

enum { kPrivateDirectory = 0700, kMostDescriptors = 65536 };

void StartPacket(struct Packet* packet, const char* kind) {
  packet->used = 0;
  AddText(packet, kind);
}

void AddText(struct Packet* packet, const char* text) {
  const size_t bytes = strlen(text) + 1;
  if (bytes > sizeof packet->bytes - packet->used) return;
  memcpy(packet->bytes + packet->used, text, bytes);
  packet->used += bytes;
}

long NowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool Say(int socket, const struct Packet* packet) {
  return send(socket, packet->bytes, packet->used, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)packet->used;
}

bool Hear(int socket, struct Packet* packet, long until_ms) {
  for (;;) {
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    const long left_ms = until_ms - NowMs();
    const int came = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
    if (came < 0 && errno == EINTR) continue;
    if (came <= 0) return false;
    const ssize_t bytes = recv(socket, packet->bytes, sizeof packet->bytes, MSG_DONTWAIT);
    packet->used = bytes > 0 ? (size_t)bytes : 0;
    return bytes > 0 && packet->bytes[bytes - 1] == '\0';
  }
}

// From here on in the child of a process with threads: nothing but system calls.

static void KeepOnly(int socket) {
  const int nothing = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < kRecorderSocket; ++fd) dup2(nothing, fd);
  if (dup2(socket, kRecorderSocket) < 0) _exit(1);
  fcntl(kRecorderSocket, F_SETFD, 0);  // where it had that number already
#ifdef SYS_close_range
  if (syscall(SYS_close_range, kRecorderSocket + 1, ~0U, 0) == 0) return;
#endif
  for (int fd = kRecorderSocket + 1; fd < kMostDescriptors; ++fd) close(fd);
}

static void UseOwnSignals(void) {
  struct sigaction usual = {.sa_handler = SIG_DFL};
  for (int number = 1; number < NSIG; ++number) sigaction(number, &usual, NULL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  alarm(kAlarmSeconds);
}

// slurmstepd is the last that the kernel ends; that is nothing for us to have from it.
static void BeFirstToDie(void) {
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  if (write(score, "1000", 4) < 0) return;
  close(score);
}

// Only what was made here is given away: what is there may be a link.
static void MakeHome(const char* home, const struct Person* person) {
  if (mkdir(home, kPrivateDirectory) != 0) return;
  const int directory = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (directory < 0) return;
  if (fchown(directory, person->user, person->group) != 0) rmdir(home);
  close(directory);
}

// By system calls of their own: the C library's would ask all threads of the process that was forked.
static bool Become(const struct Person* person) {
  return syscall(SYS_setgroups, (size_t)person->group_count, person->groups) == 0 &&
         syscall(SYS_setresgid, person->group, person->group, person->group) == 0 &&
         syscall(SYS_setresuid, person->user, person->user, person->user) == 0;
}

static void BecomeRecorder(const struct Launch* launch, int socket) {
  setsid();
  KeepOnly(socket);
  UseOwnSignals();
  BeFirstToDie();
  LeaveControlGroups();
  if (launch->home != NULL) MakeHome(launch->home, &launch->person);
  umask(S_IWGRP | S_IWOTH);
  if (geteuid() == 0 && !Become(&launch->person)) _exit(1);
  if (chdir("/") != 0) _exit(1);
  execve(launch->words[0], launch->words, launch->environment);
  _exit(127);
}

int StartRecorder(const struct Launch* launch) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  const pid_t between = fork();
  if (between == 0) {
    if (fork() == 0) BecomeRecorder(launch, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  if (between > 0) {
    while (waitpid(between, NULL, 0) < 0 && errno == EINTR) continue;
    return ends[0];
  }
  close(ends[0]);
  return -1;
}
