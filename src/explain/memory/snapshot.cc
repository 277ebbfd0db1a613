#include "explain/memory/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "explain/ingest/byte_source.h"
#include "explain/memory/pickle.h"

namespace fullbore::memory {

namespace {

using Action = Event::Action;

constexpr size_t kReadBytes = 1 << 20;
// More than any device has, and so little that no sum of so many overflows.
constexpr int64_t kMostBytes = int64_t{1} << 39;                                  // of a block or segment
constexpr size_t kMostSegments = size_t{1} << 20, kMostBlocks = size_t{1} << 22;  // of all devices
constexpr size_t kMostDevices = 1024, kMostFrames = 512;
constexpr size_t kMostEvents = size_t{1} << 23;    // the latest
constexpr int64_t kMostTimeUs = int64_t{1} << 52;  // a hundred years

Action ActionOf(std::string_view name) {
  if (name == "alloc") return Action::kAllocate;
  if (name == "free_requested") return Action::kFreeRequested;
  if (name == "free_completed" || name == "free") return Action::kFree;
  if (name == "segment_alloc") return Action::kSegmentAllocate;
  if (name == "segment_free") return Action::kSegmentFree;
  if (name == "segment_map") return Action::kSegmentMap;
  if (name == "segment_unmap") return Action::kSegmentUnmap;
  if (name == "oom") return Action::kOutOfMemory;
  return Action::kOther;
}

Block::State StateOf(std::string_view name) {
  if (name == "active_allocated") return Block::State::kInUse;
  if (name == "active_pending_free" || name == "active_awaiting_free") return Block::State::kAwaitingStream;
  return Block::State::kFree;
}

std::string TextOf(Value value) { return std::string(value.Text().value_or("")); }
uint64_t AddressOf(Value value) { return static_cast<uint64_t>(value.Int().value_or(0)); }

// Sizes that could not be any: of files that were made to break their reader.
bool IsSize(const std::optional<int64_t>& bytes) { return bytes && *bytes >= 0 && *bytes <= kMostBytes; }

class SnapshotReader {
 public:
  explicit SnapshotReader(const Pickle& pickle) : root_(pickle.root()) { out_.stacks.emplace_back(); }

  Result<MemorySnapshot> Read() {
    const Value segments = SegmentsOf(root_);
    if (!segments.is_list()) {
      return Error{ErrorCode::kUnsupported,
                   "a pickle, but none of a memory snapshot: it has no list 'segments'",
                   "torch.cuda.memory._dump_snapshot(FILE) writes what is read here"};
    }
    ReadSettings(root_.At("allocator_settings"));
    for (size_t i = 0; i < std::min(segments.size(), kMostSegments); ++i) ReadSegment(segments[i]);
    const Value traces = root_.At("device_traces");
    for (size_t i = 0; i < std::min(traces.size(), kMostDevices); ++i)
      ReadEvents(static_cast<int64_t>(i), traces[i]);
    TellWhatWasLeftOut();
    for (auto& [index, device] : devices_) {
      std::sort(device.segments.begin(), device.segments.end(),
                [](const Segment& a, const Segment& b) { return a.address < b.address; });
      out_.devices.push_back(std::move(device));
    }
    return std::move(out_);
  }

 private:
  // Before PyTorch 2.0 the segments were all there was.
  static Value SegmentsOf(Value root) { return root.is_list() ? root : root.At("segments"); }

  Device& DeviceOf(int64_t index) {
    Device& device = devices_[index];
    device.index = index;
    return device;
  }

  void ReadSettings(Value settings) {
    AllocatorSettings& to = out_.settings;
    to.expandable_segments = settings.At("expandable_segments").IsTrue();
    if (const auto most = settings.At("max_split_size").Int(); most && *most > 0) to.max_split_bytes = *most;
    to.garbage_collection_threshold = settings.At("garbage_collection_threshold").Number().value_or(0);
    const Value divisions = settings.At("roundup_power2_divisions");
    for (size_t i = 0; i < to.divisions_of_power.size(); ++i) {
      const int64_t steps = divisions.At(std::to_string(int64_t{1} << i)).Int().value_or(0);
      to.divisions_of_power[i] = std::clamp<int64_t>(steps, 0, 1024);
    }
  }

  void ReadSegment(Value from) {
    Segment segment;
    segment.address = AddressOf(from.At("address"));
    const auto bytes = from.At("total_size").Int();
    if (!IsSize(bytes)) return static_cast<void>(++bad_segments_);
    segment.bytes = *bytes;
    segment.stream = AddressOf(from.At("stream"));
    segment.small = from.At("segment_type").Text() == "small";
    segment.expandable = from.At("is_expandable").IsTrue();
    const Value pool = from.At("segment_pool_id");
    segment.pool = {pool[0].Int().value_or(0), pool[1].Int().value_or(0)};
    if (!ReadBlocks(from.At("blocks"), segment)) return static_cast<void>(++bad_segments_);
    DeviceOf(from.At("device").Int().value_or(0)).segments.push_back(std::move(segment));
  }

  // False where they are not what fills the segment.
  bool ReadBlocks(Value blocks, Segment& segment) {
    uint64_t address = segment.address;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Value from = blocks[i];
      const auto bytes = from.At("size").Int();
      const auto left = segment.bytes - static_cast<int64_t>(address - segment.address);
      if (!IsSize(bytes) || *bytes == 0 || *bytes > left) return false;
      if (++blocks_ > kMostBlocks) return false;
      Block block;
      block.address = address;
      block.bytes = *bytes;
      block.state = StateOf(from.At("state").Text().value_or(""));
      if (block.state != Block::State::kFree) block.requested = RequestedOf(from, block.bytes);
      block.stack = StackOf(StackIn(from));
      address += static_cast<uint64_t>(block.bytes);
      segment.blocks.push_back(block);
    }
    return address - segment.address == static_cast<uint64_t>(segment.bytes);
  }

  // Before PyTorch 2.1 in a history of what lay there.
  static Value LastOf(Value history) { return history.size() == 0 ? Value() : history[history.size() - 1]; }

  static int64_t RequestedOf(Value block, int64_t bytes) {
    auto requested = block.At("requested_size").Int();
    if (!requested) requested = LastOf(block.At("history")).At("real_size").Int();
    return requested && *requested > 0 && *requested <= bytes ? *requested : bytes;
  }

  static Value StackIn(Value block) {
    const Value frames = block.At("frames");
    return frames.missing() ? LastOf(block.At("history")).At("frames") : frames;
  }

  void ReadEvents(int64_t index, Value from) {
    if (from.size() == 0) return;
    Device& device = DeviceOf(index);
    const size_t first = from.size() - std::min(from.size(), kMostEvents - events_);
    events_ += from.size() - first;
    device.events.reserve(from.size() - first);
    for (size_t i = first; i < from.size(); ++i) {
      const Value each = from[i];
      Event event;
      event.action = ActionOf(each.At("action").Text().value_or(""));
      const auto bytes = each.At("size").Int();
      if (event.action != Action::kOther && !IsSize(bytes)) {
        ++bad_events_;
        continue;
      }
      event.bytes = bytes.value_or(0);
      const Value left = each.At("device_free");
      event.address = left.missing()
                          ? AddressOf(each.At("addr"))
                          : static_cast<uint64_t>(std::clamp<int64_t>(left.Int().value_or(0), 0, kMostBytes));
      event.stream = AddressOf(each.At("stream"));
      event.time_us = each.At("time_us").Int().value_or(0);
      if (event.time_us < 0 || event.time_us > kMostTimeUs) event.time_us = 0;
      event.stack = StackOf(each.At("frames"));
      device.events.push_back(event);
    }
  }

  // One index for all that are alike: the same line makes a list anew each time that it asks for memory.
  StackIndex StackOf(Value frames) {
    if (frames.size() == 0) return 0;
    const auto [known, is_new] = read_stacks_.try_emplace(frames.index(), 0);
    if (!is_new) return known->second;
    std::vector<uint32_t> stack;
    for (size_t i = 0; i < std::min(frames.size(), kMostFrames); ++i) stack.push_back(FrameOf(frames[i]));
    const auto [alike, is_first] = stacks_.try_emplace(stack, static_cast<StackIndex>(out_.stacks.size()));
    if (is_first) out_.stacks.push_back(std::move(stack));
    return known->second = alike->second;
  }

  uint32_t FrameOf(Value from) {
    const auto [known, is_new] = read_frames_.try_emplace(from.index(), 0);
    if (!is_new) return known->second;
    Frame frame = {TextOf(from.At("filename")), TextOf(from.At("name")), from.At("line").Int().value_or(0)};
    const auto [alike, is_first] = frames_.try_emplace(std::tuple(frame.file, frame.function, frame.line),
                                                       static_cast<uint32_t>(out_.frames.size()));
    if (is_first) out_.frames.push_back(std::move(frame));
    return known->second = alike->second;
  }

  void TellWhatWasLeftOut() {
    if (bad_segments_ > 0)
      out_.messages.push_back(
          fmt::format("{} segments were left out: their blocks do not add up to their size", bad_segments_));
    if (bad_events_ > 0)
      out_.messages.push_back(fmt::format("{} events without a size were left out", bad_events_));
  }

  const Value root_;
  MemorySnapshot out_;
  std::map<int64_t, Device> devices_;
  std::unordered_map<uint32_t, StackIndex> read_stacks_;  // by the index of the value
  std::unordered_map<uint32_t, uint32_t> read_frames_;
  std::map<std::vector<uint32_t>, StackIndex> stacks_;
  std::map<std::tuple<std::string, std::string, int64_t>, uint32_t> frames_;
  size_t blocks_ = 0, events_ = 0;
  int64_t bad_segments_ = 0, bad_events_ = 0;
};

Result<std::string> ReadAll(const std::string& path) {
  auto source = ingest::OpenBytes(path);
  if (!source) return source.error();
  std::string bytes;
  for (;;) {
    const size_t before = bytes.size();
    bytes.resize(before + kReadBytes);
    const auto read = (*source)->Read(bytes.data() + before, kReadBytes);
    if (!read) return read.error();
    bytes.resize(before + *read);
    if (*read == 0) return bytes;
  }
}

}  // namespace

Result<MemorySnapshot> ParseSnapshot(std::string_view bytes) {
  const auto pickle = ReadPickle(bytes);
  if (!pickle) return pickle.error();
  return SnapshotReader(*pickle).Read();
}

Result<MemorySnapshot> ReadSnapshot(const std::string& path) {
  const auto bytes = ReadAll(path);
  if (!bytes) return bytes.error();
  auto snapshot = ParseSnapshot(*bytes);
  if (snapshot) return snapshot;
  Error error = snapshot.error();
  error.text = path + ": " + error.text;
  return error;
}

bool IsSnapshot(const std::string& path) {
  const auto source = ingest::OpenBytes(path);
  if (!source) return false;
  const auto head = ingest::HeadOf(**source, 2);
  return head && LooksLikePickle(*head);
}

}  // namespace fullbore::memory
