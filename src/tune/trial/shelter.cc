#include "tune/trial/shelter.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace fullbore::tune {

namespace fs = std::filesystem;

namespace {

constexpr std::array kCaches = {"XDG_CACHE_HOME",          "HF_HOME",          "TORCH_HOME",
                                "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "KERAS_HOME"};

std::string Home() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return home;
  const passwd* user = getpwuid(getuid());
  return user == nullptr ? "" : user->pw_dir;
}

bool IsBelow(const std::string& path, const std::string& place) {
  return (path + "/").starts_with(place + "/");
}

}  // namespace

std::vector<std::string> Caches() {
  std::vector<std::string> wanted;
  for (const char* name : kCaches) {
    if (const char* path = std::getenv(name); path != nullptr && *path != '\0') wanted.emplace_back(path);
  }
  if (const std::string home = Home(); !home.empty()) wanted.push_back(home + "/.cache");
  std::error_code failed;
  const std::string here = fs::current_path(failed).string();
  std::vector<std::string> caches;
  for (const std::string& each : wanted) {
    const std::string path = fs::canonical(each, failed).string();
    if (failed || path == "/" || IsBelow(here, path) || !fs::is_directory(path, failed)) continue;
    if (std::ranges::any_of(caches, [&](const std::string& other) { return IsBelow(path, other); })) continue;
    std::erase_if(caches, [&](const std::string& other) { return IsBelow(other, path); });
    caches.push_back(path);
  }
  return caches;
}

Result<Shelter> FindShelter(const std::string& runs_directory) {
  std::error_code failed;
  const std::string temporary = fs::temp_directory_path(failed).string();
  Shelter shelter;
  const std::string runs = runs_directory.empty() ? "" : fs::absolute(runs_directory, failed).string();
  for (const std::string& place : {runs, temporary, std::string("/var/tmp")}) {
    if (place.empty()) continue;
    auto found = isolate::FindProtection(place);
    if (!found) return found.error();
    const bool has_view = found->protection == isolate::Protection::kView;
    if (shelter.place.empty() || has_view)
      shelter = {std::move(*found), has_view ? place : temporary, nullptr};
    if (has_view) break;
  }
  return AnotherLike(shelter);
}

Result<Shelter> AnotherLike(const Shelter& shelter) {
  if (shelter.found.protection != isolate::Protection::kView) return shelter;
  auto caches = isolate::Scratch::Make(shelter.place);
  if (!caches) return caches.error();
  return Shelter{shelter.found, shelter.place, std::make_shared<isolate::Scratch>(std::move(*caches))};
}

}  // namespace fullbore::tune
