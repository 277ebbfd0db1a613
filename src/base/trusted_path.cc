#include "base/trusted_path.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <filesystem>
#include <optional>

#include "base/guarded_file.h"

namespace fullbore {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLinks = 40;  // as the kernel

bool IsTrusted(uid_t owner) { return owner == geteuid() || owner == 0; }

// A user's own group, which most systems give the user's number, has nobody else in it.
bool IsOwnGroup(gid_t group) { return group == 0 || (group == getegid() && group == geteuid()); }

// In a sticky directory nobody renames or removes what belongs to another.
bool IsSticky(const struct stat& entry) { return S_ISDIR(entry.st_mode) && (entry.st_mode & S_ISVTX) != 0; }

Error Distrusted(const std::string& path, const std::string& why) {
  return {ErrorCode::kPermission, fmt::format("'{}' {}", path, why), ""};
}

std::string OwnedBy(const struct stat& entry) { return "belongs to the user " + UserName(entry.st_uid); }

std::optional<Error> WhyNot(const std::string& path, const struct stat& entry, const struct stat& parent,
                            Others others) {
  if (others == Others::kNone && !IsTrusted(entry.st_uid)) return Distrusted(path, OwnedBy(entry));
  if (CouldBePlanted(entry, parent, geteuid()))
    return Distrusted(path, OwnedBy(entry) + ", in a directory that everybody can write to");
  if (S_ISLNK(entry.st_mode) || IsSticky(entry)) return std::nullopt;
  if ((entry.st_mode & S_IWOTH) != 0) return Distrusted(path, "can be written to by everybody");
  if (others == Others::kNone && (entry.st_mode & S_IWGRP) != 0 && !IsOwnGroup(entry.st_gid))
    return Distrusted(path, fmt::format("can be written to by the group number {}", entry.st_gid));
  return std::nullopt;
}

// Puts the parts of `path` in front of those that are left to go.
void GoAlong(const fs::path& path, std::deque<std::string>& left) {
  std::deque<std::string> parts;
  for (const fs::path& part : path.relative_path()) parts.push_back(part.string());
  left.insert(left.begin(), parts.begin(), parts.end());
}

std::string Joined(std::string at, const std::deque<std::string>& left) {
  for (const std::string& part : left) at += "/" + part;
  return at;
}

}  // namespace

Result<std::string> TrustedPath(const std::string& path, Others others) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path.empty() ? "." : path, error);
  if (error) return ErrnoError("cannot find the working directory", error.value());
  std::deque<std::string> left;
  GoAlong(absolute, left);
  std::string at;  // "" is the root directory
  for (int links = 0; !left.empty();) {
    const std::string name = left.front();
    left.pop_front();
    if (name.empty() || name == ".") continue;
    if (name == "..") {  // checked on the way here
      at.resize(at.empty() ? 0 : at.rfind('/'));
      continue;
    }
    const std::string next = at + "/" + name;
    struct stat entry {
    }, parent{};
    if (lstat(next.c_str(), &entry) != 0 || stat((at + "/").c_str(), &parent) != 0) return Joined(next, left);
    if (const auto why = WhyNot(next, entry, parent, others)) return *why;
    if (!S_ISLNK(entry.st_mode)) {
      at = next;
      continue;
    }
    const fs::path target = fs::read_symlink(next, error);
    if (error || ++links > kMostLinks)
      return ErrnoError("cannot follow '" + next + "'", error ? error.value() : ELOOP);
    if (target.is_absolute()) at.clear();
    GoAlong(target, left);
  }
  return at.empty() ? "/" : at;
}

std::string UserName(unsigned user) {
  const passwd* entry = getpwuid(user);
  return entry != nullptr ? fmt::format("'{}'", entry->pw_name) : fmt::format("number {}", user);
}

std::string LoginName(unsigned user) {
  const passwd* entry = getpwuid(user);
  return entry != nullptr ? entry->pw_name : std::to_string(user);
}

}  // namespace fullbore
