#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "loader/core/source/container.h"
#include "loader/core/source/paths.h"

namespace fullbore::loader {

namespace {

struct Kind {
  const char* name;
  OpenedSource (*open)(const Opening& opening);
  std::vector<const char*> extensions;
  bool in_directories = false;  // a directory of such files stands for them
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {
      {"folder", OpenFolder, {}, false},
      {"tar", OpenTar, {".tar"}, true},
      {"tfrecord", OpenTfRecord, {".tfrecord", ".tfrecords"}, true},
      {"hdf5", OpenHdf5, {".h5", ".hdf5", ".he5"}, true},
      {"list", OpenList, {".csv", ".tsv", ".txt", ".lst", ".list"}, false},
  };
  return kinds;
}

std::string KindNames() {
  std::string names = "auto";
  for (const Kind& kind : Kinds()) names += fmt::format(", {}", kind.name);
  return names;
}

// One per kind: the extensions that its files usually have.
std::string Extensions() {
  std::string names;
  for (const Kind& kind : Kinds()) {
    if (!kind.extensions.empty()) names += (names.empty() ? "" : ", ") + std::string(kind.extensions.front());
  }
  return names;
}

const Kind* KindNamed(std::string_view name) {
  for (const Kind& kind : Kinds()) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

const Kind* KindOfFile(std::string_view path) {
  const std::string extension = ExtensionOf(path);
  for (const Kind& kind : Kinds()) {
    const auto& known = kind.extensions;
    if (std::find(known.begin(), known.end(), extension) != known.end()) return &kind;
  }
  // How TensorFlow numbers its files: "train-00000-of-01024", "x.tfrecord-00000-of-00008".
  constexpr std::string_view kNumbered = "-00000-of-00000";
  const std::string_view base = BaseName(path);
  if (base.size() <= kNumbered.size()) return nullptr;
  const std::string_view tail = base.substr(base.size() - kNumbered.size());
  const bool numbered = std::equal(tail.begin(), tail.end(), kNumbered.begin(),
                                   [](char a, char b) { return b == '0' ? a >= '0' && a <= '9' : a == b; });
  if (numbered) return KindNamed("tfrecord");
  return nullptr;
}

bool IsDirectory(const std::string& path) {
  if (IsRemote(path)) return path.ends_with('/');
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

Error NothingIn(const std::string& directory, const std::string& kind) {
  return {ErrorCode::kInvalidArgument, fmt::format("'{}' holds no files of kind {}", directory, kind), ""};
}

Error UnknownKind(const std::string& path) {
  const std::string extension = ExtensionOf(path);
  Error error{
      ErrorCode::kInvalidArgument, fmt::format("'{}' does not look like a data source by its name", path),
      fmt::format("names end in {}; a directory's on remote storage in /; in a program say which with "
                  "kind: {}",
                  Extensions(), KindNames())};
  if (extension == ".gz" || extension == ".tgz" || extension == ".zst") {
    error.text = fmt::format("'{}' is compressed: no sample can be read without those before it", path);
    error.hint = "decompress it; images are compressed already";
  }
  return error;
}

Result<const Kind*> FindKind(const std::string& wanted, const std::vector<std::string>& paths) {
  if (wanted != "auto" && !wanted.empty()) {
    if (const Kind* kind = KindNamed(wanted)) return kind;
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is not a kind of source", wanted),
                 fmt::format("the kinds are {}", KindNames())};
  }
  if (IsDirectory(paths[0])) return KindNamed("folder");
  if (const Kind* kind = KindOfFile(paths[0])) return kind;
  struct stat status;
  if (!IsRemote(paths[0]) && stat(paths[0].c_str(), &status) != 0)
    return ErrnoError(fmt::format("cannot open '{}'", paths[0]), errno);
  return UnknownKind(paths[0]);
}

// The containers directly in a directory, sorted, so that the output of `fullbore loader pack` can be opened
// by its directory.
Result<std::vector<std::string>> ContainersIn(const std::string& directory, Store& store) {
  std::vector<std::string> paths;
  if (IsRemote(directory)) {
    auto files = store.List(directory);
    if (!files) return files.error();
    for (StoredFile& file : *files) paths.push_back(std::move(file.path));
  } else {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
      if (error || entry.is_directory(error)) return std::vector<std::string>();
      paths.push_back(entry.path());
    }
  }
  std::erase_if(paths, [](const std::string& path) {
    const Kind* kind = KindOfFile(path);
    return !kind || !kind->in_directories;
  });
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

OpenedSource OpenSource(const SourceOptions& options) {
  auto paths = ExpandPaths(options.paths);
  if (!paths) return paths.error();
  if (paths->empty()) {
    return Error{ErrorCode::kInvalidArgument, "no path to read samples from was given",
                 "give a directory of class directories, tar shards, .tfrecord, .h5 or a list file"};
  }
  auto store = OpenStore(paths->front(), options);
  if (!store) return store.error();
  const bool may_be_folder = options.kind.empty() || options.kind == "auto" || options.kind == "folder";
  if (paths->size() == 1 && IsDirectory(paths->front()) && options.kind != "folder") {
    auto containers = ContainersIn(paths->front(), **store);
    if (!containers) return containers.error();
    if (!containers->empty()) {
      *paths = std::move(*containers);
    } else if (!may_be_folder) {
      return NothingIn(paths->front(), options.kind);
    }
  }
  auto kind = FindKind(options.kind, *paths);
  if (!kind) return kind.error();
  return (*kind)->open({options, std::move(*paths), std::move(*store)});
}

}  // namespace fullbore::loader
