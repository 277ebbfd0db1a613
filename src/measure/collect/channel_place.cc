#include "measure/collect/channel_place.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "measure/collect/leftovers.h"

namespace fullbore::collect {

namespace fs = std::filesystem;

namespace {

// Less is left to the training. The hook makes rings no larger than a small part of what is free (channel.py).
constexpr uint64_t kLeastFreeBytes = 8 << 20;

std::string Temporary() {
  std::error_code unusable;
  const fs::path place = fs::temp_directory_path(unusable);
  return unusable ? "/tmp" : place.string();
}

std::vector<std::string> MemoryPlaces() { return {"/dev/shm", Temporary()}; }
std::vector<std::string> DiskPlaces(const std::string& runs_directory) {
  return {runs_directory, Temporary(), "/tmp"};
}

bool HasRoom(const std::string& directory) {
  struct statvfs status {};
  return statvfs(directory.c_str(), &status) == 0 &&
         uint64_t{status.f_bavail} * status.f_frsize >= kLeastFreeBytes;
}

// Only this user and root may make, rename and remove entries here; in a sticky directory, those of their own.
bool OthersLeaveItAlone(const struct stat& status) {
  const bool is_ours = status.st_uid == geteuid() || status.st_uid == 0;
  const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  return S_ISDIR(status.st_mode) && is_ours && (!others_write || (status.st_mode & S_ISVTX) != 0);
}

Result<std::string> MakeOnDisk(const std::string& run_id, const std::vector<std::string>& disks) {
  Error last{ErrorCode::kPermission, "no directory that only this user can change", "set TMPDIR to one"};
  for (const std::string& disk : disks) {
    if (!IsSafePlace(disk)) continue;
    auto made = MakeChannelDirectory(disk, run_id);
    if (made) return made;
    last = made.error();
  }
  return last;
}

}  // namespace

bool IsSafePlace(const std::string& directory) {
  std::error_code broken;
  fs::path at = fs::canonical(directory, broken);
  if (broken) return false;
  for (;; at = at.parent_path()) {
    struct stat status {};
    if (lstat(at.c_str(), &status) != 0 || !OthersLeaveItAlone(status)) return false;
    if (at == at.parent_path()) return true;
  }
}

Result<ChannelPlace> MakeChannelPlace(const std::string& run_id, const std::vector<std::string>& memory,
                                      const std::vector<std::string>& disks) {
  auto traces = MakeOnDisk(run_id, disks);
  for (const std::string& place : memory) {
    if (!IsInMemory(place) || !HasRoom(place) || !IsSafePlace(place)) continue;
    if (auto channel = MakeChannelDirectory(place, "fullbore-" + run_id))
      return ChannelPlace{*channel, traces ? *traces : *channel};
  }
  if (!traces) return traces.error();
  return ChannelPlace{*traces, *traces};
}

Result<ChannelPlace> MakeChannelPlace(const std::string& runs_directory, const std::string& run_id) {
  return MakeChannelPlace(run_id, MemoryPlaces(), DiskPlaces(runs_directory));
}

void Remove(const ChannelPlace& place) {
  std::error_code ignored;
  for (const std::string& directory : {place.channel, place.traces})
    if (!directory.empty()) fs::remove_all(directory, ignored);
}

void Beat(const ChannelPlace& place) {
  if (!place.channel.empty()) Beat(place.channel);
  if (place.traces != place.channel) Beat(place.traces);
}

int RemoveLeftoverPlaces(const std::string& runs_directory) {
  std::vector<std::string> places = MemoryPlaces();
  for (const std::string& disk : DiskPlaces(runs_directory)) places.push_back(disk);
  std::ranges::sort(places);
  places.erase(std::ranges::unique(places).begin(), places.end());
  int removed = 0;
  for (const std::string& place : places) removed += RemoveLeftovers(place);
  return removed;
}

}  // namespace fullbore::collect
