#include "fleet/collect.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "record/run_reader.h"
#include "watch/run_index.h"

namespace fullbore::fleet {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kClocksDifferNs = 24 * 3600 * kNsPerSecond;  // of machines, at most
constexpr size_t kMostWaiting = 64;                            // accounts that are not written yet

Stamp StampOfFile(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  Stamp stamp{info.st_size, info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec};
  if (stat((path + "-wal").c_str(), &info) == 0) {
    stamp.bytes += info.st_size;
    stamp.changed_ns = std::max(stamp.changed_ns, info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec);
  }
  return stamp;
}

Stamp StampOf(const std::string& run) {
  std::error_code ignored;
  if (!fs::is_directory(run, ignored)) return StampOfFile(run);
  Stamp all;
  for (const auto& entry : fs::directory_iterator(run, ignored)) {
    const Stamp stamp = StampOfFile(entry.path());
    all.bytes += stamp.bytes;
    all.changed_ns = std::max(all.changed_ns, stamp.changed_ns);
  }
  return all;
}

// A run that goes on is put as if it had changed a moment before: it is read again also where nothing changes any more,
// because it was cut off, and what is put then is newer.
Stamp StampToPut(const RunAccount& account, Stamp stamp) {
  const bool goes_on = !account.ended && !account.cut_off;
  if (goes_on) --stamp.changed_ns;
  return stamp;
}

struct Read {
  std::string path;
  Stamp stamp;
  Result<RunAccount> account;
};

// What the readers have done and the writer has not.
class Finished {
 public:
  void Add(Read read) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return waiting_.size() < kMostWaiting || over_; });
    waiting_.push_back(std::move(read));
    some_.notify_one();
  }
  Read Take() {
    std::unique_lock lock(mutex_);
    some_.wait(lock, [&] { return !waiting_.empty(); });
    Read read = std::move(waiting_.front());
    waiting_.pop_front();
    room_.notify_one();
    return read;
  }
  void Stop() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    room_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable some_, room_;
  std::deque<Read> waiting_;
  bool over_ = false;
};

Result<RunAccount> ReadAccount(const std::string& path, int64_t wall_ns) try {
  const auto recording = record::ReadRun(path);
  if (!recording) return recording.error();
  RunAccount account = AccountOf(*recording, {.cut_off = watch::IsSilent(path, wall_ns)});
  if (account.end_unix_ns > wall_ns + kClocksDifferNs)
    return Error{ErrorCode::kCorrupt, fmt::format("'{}': it says that it goes on into the future", path), ""};
  return account;
} catch (const std::exception& error) {  // a bug, or no memory: the other runs are read
  return Error{ErrorCode::kInternal, fmt::format("'{}': {}", path, error.what()), ""};
}

// Each directory by itself, so that one that cannot be read, or is gone meanwhile, ends nothing but itself.
void FindBelow(const fs::path& directory, Found& found) {
  std::error_code error;
  std::vector<fs::path> below;
  auto each = fs::directory_iterator(directory, error);
  for (; !error && each != fs::directory_iterator(); each.increment(error)) {
    std::error_code ignored;
    if (each->is_symlink(ignored)) continue;
    if (each->path().extension() == record::kRunSuffix)
      found.runs.push_back(each->path());
    else if (each->is_directory(ignored))
      below.push_back(each->path());
  }
  if (error) found.unread.push_back(fmt::format("'{}': {}", directory.string(), error.message()));
  for (const fs::path& next : below) FindBelow(next, found);
}

}  // namespace

Result<Found> FindRuns(const std::vector<std::string>& directories) {
  Found found;
  for (const std::string& directory : directories) {
    std::error_code error;
    const fs::path absolute = fs::canonical(directory, error);
    if (error) {
      return Error{ErrorCode::kNotFound, fmt::format("cannot look into '{}': {}", directory, error.message()),
                   "name directories that hold runs"};
    }
    if (absolute.extension() == record::kRunSuffix)
      found.runs.push_back(absolute);
    else
      FindBelow(absolute, found);
  }
  std::ranges::sort(found.runs);
  found.runs.erase(std::unique(found.runs.begin(), found.runs.end()), found.runs.end());
  return found;
}

Result<Collected> Collect(const CollectOptions& options, Store& store) {
  const auto seen = store.Seen();
  if (!seen && seen.error().code != ErrorCode::kPermission) return seen.error();
  auto found = FindRuns(options.directories);
  if (!found) return found.error();
  Collected collected;
  collected.all_again = !seen;
  collected.unread = std::move(found->unread);
  std::vector<std::pair<std::string, Stamp>> changed;
  for (const std::string& path : found->runs) {
    ++collected.runs;
    const Stamp stamp = StampOf(path);
    if (!seen || !seen->contains({path, stamp})) changed.emplace_back(path, stamp);
  }
  Finished finished;
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> readers;
  for (size_t i = 0; i < std::min(std::max<size_t>(1, options.threads), changed.size()); ++i) {
    readers.emplace_back([&] {
      for (size_t mine = next++; mine < changed.size(); mine = next++)
        finished.Add(
            {changed[mine].first, changed[mine].second, ReadAccount(changed[mine].first, options.wall_ns())});
    });
  }
  Result<void> put;
  for (size_t done = 0; done < changed.size() && put; ++done) {
    const Read read = finished.Take();
    if (read.account) {
      put = store.Put(*read.account, StampToPut(*read.account, read.stamp));
      ++collected.changed;
    } else {
      collected.unread.push_back(read.account.error().text);
    }
    if (options.progress) options.progress(done + 1, changed.size());
  }
  if (!put) {
    next = changed.size();
    finished.Stop();
    return put.error();
  }
  return collected;
}

}  // namespace fullbore::fleet
