#include "collect/channel_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/text.h"

namespace fullbore::collect {

namespace {

using record::ChannelHeader;
using record::ChannelRecord;

constexpr std::string_view kRingSuffix = ".ring";
constexpr uint32_t kLargestCapacity = 1 << 20;

Error NoChannel(const std::string& path, const std::string& why) {
  return {ErrorCode::kCorrupt, "'" + path + "' is no channel: " + why, ""};
}

}  // namespace

Result<std::unique_ptr<Channel>> Channel::Open(const std::string& ring_path) {
  UniqueFd fd(open(ring_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError("cannot open '" + ring_path + "'", errno);
  struct stat about {};
  if (fstat(fd.get(), &about) != 0) return ErrnoError("cannot look at '" + ring_path + "'", errno);
  std::unique_ptr<Channel> channel(new Channel);
  if (static_cast<size_t>(about.st_size) < record::kChannelHeaderBytes)
    return NoChannel(ring_path, "too short");
  ChannelHeader& header = channel->header_;
  if (pread(fd.get(), &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) {
    return ErrnoError("cannot read '" + ring_path + "'", errno);
  }
  if (std::memcmp(header.magic, record::kChannelMagic, sizeof header.magic) != 0) {
    return NoChannel(ring_path, "wrong magic");
  }
  const size_t wanted = record::kChannelHeaderBytes + size_t{header.capacity} * record::kChannelRecordBytes;
  if (header.record_bytes != record::kChannelRecordBytes || header.capacity == 0 ||
      header.capacity > kLargestCapacity || static_cast<size_t>(about.st_size) < wanted) {
    return NoChannel(ring_path, "its header does not fit its size");
  }
  void* map = mmap(nullptr, wanted, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return ErrnoError("cannot map '" + ring_path + "'", errno);
  channel->map_ = static_cast<const char*>(map);
  channel->map_bytes_ = wanted;
  channel->text_path_ = ring_path.substr(0, ring_path.size() - kRingSuffix.size()) + ".jsonl";
  return channel;
}

Channel::~Channel() {
  if (map_) munmap(const_cast<char*>(map_), map_bytes_);
}

std::vector<ChannelRecord> Channel::ReadEvents() {
  std::vector<ChannelRecord> events;
  const char* records = map_ + record::kChannelHeaderBytes;
  const auto at = [&](uint64_t sequence) {
    return records + ((sequence - 1) % header_.capacity) * sizeof(ChannelRecord);
  };
  const auto sequence_of = [](const char* slot) {
    return __atomic_load_n(reinterpret_cast<const uint64_t*>(slot + offsetof(ChannelRecord, sequence)),
                           __ATOMIC_ACQUIRE);
  };
  while (true) {
    const char* slot = at(next_sequence_);
    const uint64_t found = sequence_of(slot);
    if (found < next_sequence_) return events;
    if (found > next_sequence_) {  // lapped: go on with the oldest that will live for another half turn
      const uint64_t oldest = found > header_.capacity / 2 ? found - header_.capacity / 2 : 1;
      const uint64_t next = std::max(oldest, next_sequence_ + 1);
      lost_ += next - next_sequence_;
      next_sequence_ = next;
      continue;
    }
    ChannelRecord event;
    std::memcpy(&event, slot, sizeof event);
    if (sequence_of(slot) != found) continue;  // overwritten while it was copied
    events.push_back(event);
    ++next_sequence_;
  }
}

std::vector<nlohmann::json> Channel::ReadLines() {
  std::vector<nlohmann::json> lines;
  if (!text_.valid()) text_.reset(open(text_path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!text_.valid()) return lines;
  char buffer[16 * 1024];
  for (ssize_t n; (n = read(text_.get(), buffer, sizeof buffer)) > 0;)
    partial_line_.append(buffer, static_cast<size_t>(n));
  const size_t end = partial_line_.rfind('\n');
  if (end == std::string::npos) return lines;
  for (const std::string_view line : Split(std::string_view(partial_line_).substr(0, end), '\n')) {
    nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) lines.push_back(std::move(object));
  }
  partial_line_.erase(0, end + 1);
  return lines;
}

std::vector<Channel*> ChannelDirectory::Discover() {
  std::vector<Channel*> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    const std::string path = entry.path();
    if (!path.ends_with(kRingSuffix) || channels_.count(path)) continue;
    auto channel = Channel::Open(path);
    if (!channel) continue;  // half-written: tried again at the next call
    found.push_back(channel->get());
    channels_[path] = std::move(*channel);
  }
  return found;
}

}  // namespace fullbore::collect
