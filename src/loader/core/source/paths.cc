#include "loader/core/source/paths.h"

#include <algorithm>
#include <array>

namespace fullbore::loader {

namespace {

constexpr std::string_view kFileScheme = "file://";
constexpr size_t kMaxImageExtension = 5;

// torchvision.datasets.folder.IMG_EXTENSIONS
constexpr std::array<std::string_view, 9> kImageExtensions = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                                              ".pgm", ".tif",  ".tiff", ".webp"};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view WithoutQuery(std::string_view path) {
  return IsRemote(path) ? path.substr(0, path.find('?')) : path;
}

}  // namespace

bool IsRemote(std::string_view path) {
  return path.starts_with("http://") || path.starts_with("https://") || path.starts_with("s3://");
}

std::string LocalPath(std::string_view path) {
  if (path.starts_with(kFileScheme)) path.remove_prefix(kFileScheme.size());
  return std::string(path);
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view DirectoryOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {};
  return path.substr(0, slash == 0 ? 1 : slash);
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  if (directory.empty() || name.starts_with('/') || IsRemote(name)) return std::string(name);
  std::string joined(directory);
  if (!joined.ends_with('/')) joined += '/';
  return joined.append(name);
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  return lower;
}

std::string ExtensionOf(std::string_view path) {
  const std::string_view base = BaseName(WithoutQuery(path));
  const size_t dot = base.rfind('.');
  return dot == std::string_view::npos ? std::string() : LowerCase(base.substr(dot));
}

bool HasImageExtension(std::string_view path) {
  // Called for a million names, so it allocates nothing.
  const std::string_view tail = path.substr(path.size() - std::min(path.size(), kMaxImageExtension));
  return std::any_of(kImageExtensions.begin(), kImageExtensions.end(), [&](std::string_view extension) {
    if (tail.size() < extension.size()) return false;
    const std::string_view end = tail.substr(tail.size() - extension.size());
    return std::equal(end.begin(), end.end(), extension.begin(),
                      [](char a, char b) { return Lower(a) == b; });
  });
}

}  // namespace fullbore::loader
