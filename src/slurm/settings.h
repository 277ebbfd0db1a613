// What an administrator sets in plugstack.conf, and a user with --fullbore: whether a step is recorded, and where.
#pragma once

#include <limits.h>
#include <stdbool.h>

enum Mode { kModeUnset, kModeOff, kModeOn, kModeWindows };

struct Settings {
  enum Mode mode;  // unless the user says otherwise
  char directory
      [PATH_MAX];  // of runs, in which each user has one of his own; empty: below the job's working directory
  char binary[PATH_MAX];  // the program fullbore
  int wait_ms;            // how long a job's start may wait for its recorder
};

// kModeUnset where the text is none of them. A missing one (`--fullbore`) is "on".
enum Mode ModeOf(const char* text);
const char* NameOfMode(enum Mode mode);

// The words behind the plugin's path in plugstack.conf. Returns the first that is wrong, or NULL.
const char* ReadSettings(int count, char* words[], struct Settings* settings);
