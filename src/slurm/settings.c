#include "slurm/settings.h"

#include <stdlib.h>
#include <string.h>

// With what starting the recorder takes, a job's start is held up by less than 100 ms.
enum { kUsualWaitMs = 80, kLongestWaitMs = 10000 };

static const char* const kModes[] = {"", "off", "on", "windows"};

// Slurm hands an option without a word on to the steps of a script as "(null)".
enum Mode ModeOf(const char* text) {
  if (text == NULL || *text == '\0' || strcmp(text, "(null)") == 0) return kModeOn;
  for (int mode = kModeOff; mode <= kModeWindows; ++mode) {
    if (strcmp(text, kModes[mode]) == 0) return (enum Mode)mode;
  }
  return kModeUnset;
}

const char* NameOfMode(enum Mode mode) { return kModes[mode]; }

// The value of "name=value" where that is the word's name.
static const char* ValueOf(const char* word, const char* name) {
  const size_t length = strlen(name);
  return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static bool TakePath(const char* value, char path[PATH_MAX]) {
  const size_t length = strlen(value);
  if (value[0] != '/' || length >= PATH_MAX) return false;
  memcpy(path, value, length + 1);
  return true;
}

static bool TakeMode(const char* value, enum Mode* mode) {
  if (*value == '\0' || *value == '(' || ModeOf(value) == kModeUnset) return false;
  *mode = ModeOf(value);
  return true;
}

static bool TakeWait(const char* value, int* wait_ms) {
  char* end = NULL;
  const long wanted = strtol(value, &end, 10);
  if (end == value || *end != '\0' || wanted < 1 || wanted > kLongestWaitMs) return false;
  *wait_ms = (int)wanted;
  return true;
}

static bool Take(const char* word, struct Settings* settings) {
  const char* value = NULL;
  if ((value = ValueOf(word, "default")) != NULL) return TakeMode(value, &settings->mode);
  if ((value = ValueOf(word, "dir")) != NULL) return TakePath(value, settings->directory);
  if ((value = ValueOf(word, "binary")) != NULL) return TakePath(value, settings->binary);
  if ((value = ValueOf(word, "wait_ms")) != NULL) return TakeWait(value, &settings->wait_ms);
  return false;
}

const char* ReadSettings(int count, char* words[], struct Settings* settings) {
  *settings = (struct Settings){
      .mode = kModeOff, .directory = "", .binary = "/usr/bin/fullbore", .wait_ms = kUsualWaitMs};
  for (int i = 0; i < count; ++i) {
    if (!Take(words[i], settings)) return words[i];
  }
  return NULL;
}
