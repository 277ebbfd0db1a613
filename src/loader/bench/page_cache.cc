#include "loader/bench/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/fd.h"

namespace fullbore::loader::bench {

namespace fs = std::filesystem;

namespace {

constexpr size_t kLookedAt = 64;

struct Pages {
  size_t all = 0, resident = 0;
};

void CountPages(const std::string& file, Pages& pages) {
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || fstat(fd.get(), &status) != 0 || status.st_size <= 0) return;
  const auto bytes = static_cast<size_t>(status.st_size);
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return;
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((bytes + page_bytes - 1) / page_bytes);
  if (mincore(mapped, bytes, resident.data()) == 0) {
    pages.all += resident.size();
    pages.resident += static_cast<size_t>(std::count_if(
        resident.begin(), resident.end(), [](unsigned char flags) { return (flags & 1) != 0; }));
  }
  munmap(mapped, bytes);
}

}  // namespace

double DropFromPageCache(const std::vector<std::string>& files, const std::atomic<bool>& stop) {
  for (const std::string& file : files) {
    if (stop.load(std::memory_order_relaxed)) break;
    const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.valid()) posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  Pages pages;
  const size_t every = std::max<size_t>(1, files.size() / kLookedAt);
  for (size_t i = 0; i < files.size(); i += every) CountPages(files[i], pages);
  return pages.all == 0 ? 1 : static_cast<double>(pages.resident) / static_cast<double>(pages.all);
}

std::vector<std::string> LocalFiles(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  std::error_code error;
  for (const std::string& path : paths) {
    if (path.find("://") != std::string::npos) return {};
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    for (auto entry =
             fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, error);
         !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      if (entry->is_regular_file(error)) files.push_back(entry->path().string());
    }
  }
  return files;
}

}  // namespace fullbore::loader::bench
