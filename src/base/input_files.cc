#include "base/input_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"

namespace fullbore {

namespace {

namespace fs = std::filesystem;

bool IsSame(const std::string& path, const struct stat& file) {
  struct stat other {};
  return stat(path.c_str(), &other) == 0 && other.st_dev == file.st_dev && other.st_ino == file.st_ino;
}

// Where the shell would find a program, as every name it could have.
std::vector<std::string> PlacesOf(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> places;
  const char* search = std::getenv("PATH");
  for (const std::string_view directory : Split(search ? search : "", ':'))
    places.push_back(std::string(directory.empty() ? "." : directory) + "/" + program);
  return places;
}

std::string FileOfModule(std::string module) {
  std::replace(module.begin(), module.end(), '.', '/');
  return module;
}

// The parts of a word that may each name a file.
std::vector<std::string> NamesIn(const std::string& word) {
  constexpr std::string_view kBetween = " \t\n\"'=;|<>&(){}";
  std::vector<std::string> names = {word};
  for (size_t begin = 0; begin < word.size();) {
    begin = word.find_first_not_of(kBetween, begin);
    if (begin == std::string::npos) break;
    const size_t end = std::min(word.find_first_of(kBetween, begin), word.size());
    names.push_back(word.substr(begin, end - begin));
    begin = end;
  }
  if (const size_t equals = word.find('='); equals != std::string::npos)
    names.push_back(word.substr(equals + 1));
  return names;
}

}  // namespace

void InputFiles::Add(const std::string& path) { paths_.push_back(path); }

void InputFiles::AddCommand(const std::vector<std::string>& command) {
  if (command.empty()) return;
  for (std::string& place : PlacesOf(command.front())) of_words_.push_back(std::move(place));
  for (size_t i = 0; i < command.size(); ++i) {
    for (std::string& name : NamesIn(command[i])) of_words_.push_back(std::move(name));
    if (i == 0 || command[i - 1] != "-m") continue;
    of_words_.push_back(FileOfModule(command[i]) + ".py");
    of_words_.push_back(FileOfModule(command[i]) + "/__main__.py");
  }
}

std::optional<std::string> InputFiles::NameOf(const struct stat& file) const {
  for (const auto* names : {&paths_, &of_words_}) {
    for (const std::string& name : *names) {
      if (IsSame(name, file)) return name;
    }
  }
  return std::nullopt;
}

std::optional<std::string> InputFiles::DirectoryWith(const std::string& path, const struct stat& file) const {
  constexpr auto kAnyway = fs::directory_options::skip_permission_denied;
  for (const std::string& directory : paths_) {
    std::error_code error;
    if (!fs::is_directory(directory, error)) continue;
    const std::string real = fs::canonical(directory, error).string();
    if (!error && path.starts_with(real.ends_with('/') ? real : real + "/")) return directory;
    int entries = 0;
    for (fs::recursive_directory_iterator each(directory, kAnyway, error), end;
         !error && each != end && ++entries < kMostEntries; each.increment(error)) {
      if (IsSame(each->path().string(), file)) return directory;
    }
  }
  return std::nullopt;
}

}  // namespace fullbore
