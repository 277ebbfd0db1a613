#include "measure/collect/channel_reader.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/text.h"
#include "measure/collect/process.h"
#include "record/json_text.h"

namespace fullbore::collect {

namespace {

using record::ChannelHeader;
using record::ChannelRecord;

constexpr std::string_view kRingSuffix = ".ring";
constexpr std::string_view kTextSuffix = ".jsonl";
constexpr uint32_t kMaxCapacity = 1 << 20;
constexpr uint64_t kLastSequence = uint64_t{1} << 48;  // a century of 1 ms steps
constexpr size_t kMaxLineBytes = 1 << 20;
// All events of a dead owner are in the ring already; its children may still refer to it for a moment.
constexpr int64_t kOverAfterNs = 5 * kNsPerSecond;

// The files of a directory, as far as it can be listed.
std::vector<std::string> FilesOf(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error))
    files.push_back(at->path());
  return files;
}

std::vector<nlohmann::json> ParseLines(std::string_view text) {
  std::vector<nlohmann::json> lines;
  for (const std::string_view line : Split(text, '\n')) {
    nlohmann::json object = record::ParseJson(line);
    if (object.is_object()) lines.push_back(std::move(object));
  }
  return lines;
}

// At most kMaxLineBytes bytes: a process that could not create a ring writes a line or two.
std::string BeginningOf(const std::string& path) {
  const auto file = OpenRegularFile(path);
  if (!file) return "";
  std::string text(kMaxLineBytes, '\0');
  const ssize_t size = pread(file->get(), text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, size)));
  return text;
}

Error NotAChannel(const std::string& path, const std::string& why) {
  return {ErrorCode::kCorrupt, "'" + path + "' is not a channel: " + why, ""};
}

}  // namespace

Result<std::unique_ptr<Channel>> Channel::Open(const std::string& ring_path) {
  auto opened = OpenRegularFile(ring_path);
  if (!opened) return opened.error();
  UniqueFd fd = std::move(*opened);
  struct stat about {};
  if (fstat(fd.get(), &about) != 0) return ErrnoError("cannot stat '" + ring_path + "'", errno);
  std::unique_ptr<Channel> channel(new Channel);
  if (static_cast<size_t>(about.st_size) < record::kChannelHeaderBytes)
    return NotAChannel(ring_path, "too short");
  ChannelHeader& header = channel->header_;
  if (pread(fd.get(), &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) {
    return ErrnoError("cannot read '" + ring_path + "'", errno);
  }
  if (std::memcmp(header.magic, record::kChannelMagic, sizeof header.magic) != 0) {
    return NotAChannel(ring_path, "wrong magic");
  }
  const size_t wanted = record::kChannelHeaderBytes + size_t{header.capacity} * record::kChannelRecordBytes;
  if (header.record_bytes != record::kChannelRecordBytes || header.capacity == 0 ||
      header.capacity > kMaxCapacity || static_cast<size_t>(about.st_size) < wanted) {
    return NotAChannel(ring_path, "its header does not fit its size");
  }
  void* map = mmap(nullptr, wanted, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return ErrnoError("cannot map '" + ring_path + "'", errno);
  channel->map_ = static_cast<const char*>(map);
  channel->map_bytes_ = wanted;
  channel->ring_ = std::move(fd);
  channel->owner_seen_ = header.pid > 0 && IsAlive(header.pid);
  channel->last_news_ns_ = MonotonicNs();
  channel->text_path_ = ring_path.substr(0, ring_path.size() - kRingSuffix.size()) + ".jsonl";
  return channel;
}

Channel::~Channel() {
  if (map_) munmap(const_cast<char*>(map_), map_bytes_);
}

std::vector<ChannelRecord> Channel::ReadEvents() {
  std::vector<ChannelRecord> events;
  struct stat about {};  // a truncated ring would raise SIGBUS
  if (fstat(ring_.get(), &about) != 0 || static_cast<size_t>(about.st_size) < map_bytes_) broken_ = true;
  const char* records = map_ + record::kChannelHeaderBytes;
  const auto slot_of = [&](uint64_t sequence) { return (sequence - 1) % header_.capacity; };
  const auto sequence_of = [](const char* slot) {
    return __atomic_load_n(reinterpret_cast<const uint64_t*>(slot + offsetof(ChannelRecord, sequence)),
                           __ATOMIC_ACQUIRE);
  };
  while (!broken_) {
    const char* slot = records + slot_of(next_sequence_) * sizeof(ChannelRecord);
    const uint64_t found = sequence_of(slot);
    if (found < next_sequence_) break;
    if (found > kLastSequence || slot_of(found) != slot_of(next_sequence_)) {
      broken_ = true;
      break;
    }
    if (found > next_sequence_) {  // lapped: resume half a ring behind the writer
      const uint64_t oldest = found > header_.capacity / 2 ? found - header_.capacity / 2 : 1;
      const uint64_t next = std::max(oldest, next_sequence_ + 1);
      lost_ += next - next_sequence_;
      next_sequence_ = next;
      continue;
    }
    ChannelRecord event;
    std::memcpy(&event, slot, sizeof event);
    if (sequence_of(slot) != found) continue;  // overwritten while being copied
    events.push_back(event);
    ++next_sequence_;
  }
  if (!events.empty()) last_news_ns_ = MonotonicNs();
  return events;
}

std::vector<nlohmann::json> Channel::ReadLines() {
  if (!text_.valid()) {
    auto opened = OpenRegularFile(text_path_);
    if (!opened) return {};
    text_ = std::move(*opened);
  }
  char buffer[16 * 1024];
  for (ssize_t n; (n = read(text_.get(), buffer, sizeof buffer)) > 0;) {
    partial_line_.append(buffer, static_cast<size_t>(n));
    last_news_ns_ = MonotonicNs();
    if (partial_line_.size() > kMaxLineBytes) break;  // the rest comes at the next call
  }
  const size_t end = partial_line_.rfind('\n');
  if (end == std::string::npos) {
    if (partial_line_.size() > kMaxLineBytes) partial_line_.clear();  // no line of ours is that long
    return {};
  }
  std::vector<nlohmann::json> lines = ParseLines(std::string_view(partial_line_).substr(0, end));
  partial_line_.erase(0, end + 1);
  return lines;
}

bool Channel::IsOver(int64_t now_ns) {
  if (!owner_seen_ || now_ns - last_news_ns_ < kOverAfterNs) return false;
  return std::exchange(owner_gone_, !IsAlive(header_.pid));
}

std::vector<Channel*> ChannelDirectory::Discover() {
  std::vector<Channel*> found;
  for (const std::string& path : FilesOf(directory_)) {
    if (!path.ends_with(kRingSuffix) || channels_.count(path)) continue;
    auto channel = Channel::Open(path);
    if (!channel) continue;  // half-written: tried again at the next call
    found.push_back(channel->get());
    channels_[path] = std::move(*channel);
  }
  return found;
}

void ChannelDirectory::RemoveFinished(int64_t now_ns) {
  std::erase_if(channels_, [&](const auto& entry) {
    if (!entry.second->IsOver(now_ns)) return false;
    std::error_code ignored;
    // If it cannot be removed, it would be found again and read twice.
    if (!std::filesystem::remove(entry.first, ignored)) return false;
    std::filesystem::remove(entry.second->text_path(), ignored);
    return true;
  });
}

std::vector<nlohmann::json> ChannelDirectory::LinesWithoutRing() const {
  std::vector<nlohmann::json> lines;
  for (const std::string& path : FilesOf(directory_)) {
    if (!path.ends_with(kTextSuffix)) continue;
    const std::string ring = path.substr(0, path.size() - kTextSuffix.size()) + std::string(kRingSuffix);
    if (channels_.count(ring)) continue;
    for (nlohmann::json& line : ParseLines(BeginningOf(path))) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace fullbore::collect
