// The recorder of a step on this node, as the process that starts its tasks sees it: a process of the job's user, started
// by us and outside of the job, and a socket to it (src/measure/collect/starter.h has the other end and what is said).
//
// Whatever happens to it, the job goes on: nothing here waits longer than it is told to, and what cannot be said is left
// out. It is nobody's child but init's, has descriptors, signals and a session of its own, and the kernel's first choice
// where memory ends.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { kMostPacketBytes = 64 << 10 };

struct Packet {
  char bytes[kMostPacketBytes];
  size_t used;
};

void StartPacket(struct Packet* packet, const char* kind);
// Leaves out a text that does not fit any more.
void AddText(struct Packet* packet, const char* text);

struct Person {
  uid_t user;
  gid_t group;
  gid_t* groups;  // the supplementary ones
  int group_count;
};

struct Launch {
  char** words;        // of the recorder's command line, NULL at the end; the first is the program's path
  char** environment;  // NULL at the end
  const char* home;    // made for that user if it is missing; NULL: nothing is made
  struct Person person;
};

enum { kRecorderSocket = 3, kAlarmSeconds = 30 };

// Returns the socket, or -1. The recorder has it as kRecorderSocket, and an alarm, which it switches off once it listens:
// one that hangs before that does not stay.
int StartRecorder(const struct Launch* launch);

bool Say(int socket, const struct Packet* packet);
// Waits until `until_ms` of the monotonic clock. False where nothing came, or the recorder has ended.
bool Hear(int socket, struct Packet* packet, long until_ms);
long NowMs(void);
