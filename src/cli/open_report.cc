#include "cli/open_report.h"

#include <cstdlib>
#include <filesystem>

#include "base/exec.h"
#include "base/print.h"

namespace fullbore::cli {

namespace {

bool IsSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

// Without a display xdg-open would fall back to a browser for terminals, in the middle of the report.
bool HasDesktop() { return IsSet("DISPLAY") || IsSet("WAYLAND_DISPLAY"); }

bool Start(const std::string& path) {
  SpawnOptions options;
  options.apart = SpawnOptions::Apart::kSession;
  options.outlives_us = true;
  options.usual_signals = true;
  pid_t pid = -1;
  for (const char* opener : {"xdg-open", "open"}) {
    if (Spawn({opener, path}, options, pid) == 0) return true;
  }
  return false;
}

}  // namespace

void OpenReport(const std::string& path) {
  std::error_code unknown;
  const std::string whole = std::filesystem::absolute(path, unknown).string();
  if (!HasDesktop())
    Print(stderr, "fullbore: --open: there is no desktop here (DISPLAY, WAYLAND_DISPLAY); the report is {}\n",
          whole);
  else if (!Start(whole))
    Print(stderr, "fullbore: --open: neither xdg-open nor open is installed; the report is {}\n", whole);
}

}  // namespace fullbore::cli
