#include "loader/remote_process/server.h"

#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>

#include "fullbore/loader/batch_memory.h"
#include "loader/core/options_json.h"
#include "loader/remote_process/protocol.h"

namespace fullbore::loader {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// While the client waits for a batch, its releases are checked this often: the batch may be waiting for
// exactly that memory.
constexpr milliseconds kReleaseCheck{20};
// Another forked process may hold the client's end open: then only the parent's pid shows that it is gone.
constexpr milliseconds kParentCheck{1000};

// Shared memory that knows the block of an address.
class NumberedMemory : public BatchMemory {
 public:
  struct Place {
    uint64_t block = 0, bytes = 0, offset = 0;
    int fd = -1;
  };

  Result<MemoryBlock> Allocate(size_t bytes) override {
    auto block = memory_->Allocate(bytes);
    if (!block) return block;
    std::lock_guard lock(mutex_);
    blocks_[static_cast<const char*>(block->data)] = {next_++, bytes, block->fd};
    return block;
  }

  void Free(MemoryBlock block) override {
    {
      std::lock_guard lock(mutex_);
      blocks_.erase(static_cast<const char*>(block.data));
    }
    memory_->Free(block);
  }

  Place PlaceOf(const void* data) const {
    std::lock_guard lock(mutex_);
    const char* address = static_cast<const char*>(data);
    auto after = blocks_.upper_bound(address);
    FB_CHECK(after != blocks_.begin());
    const auto& [begin, block] = *std::prev(after);
    const auto offset = static_cast<uint64_t>(address - begin);
    FB_CHECK(offset <= block.bytes);
    return {block.number, block.bytes, offset, block.fd};
  }

  // The numbers of blocks in `known` that no longer exist; removes them from `known`.
  std::vector<uint64_t> TakeFreed(std::map<uint64_t, bool>& known) const {
    std::lock_guard lock(mutex_);
    std::map<uint64_t, bool> alive;
    for (const auto& [begin, block] : blocks_) alive[block.number] = true;
    std::vector<uint64_t> freed;
    for (auto it = known.begin(); it != known.end();) {
      if (alive.count(it->first)) {
        ++it;
      } else {
        freed.push_back(it->first);
        it = known.erase(it);
      }
    }
    return freed;
  }

 private:
  struct Block {
    uint64_t number = 0, bytes = 0;
    int fd = -1;
  };
  const std::shared_ptr<BatchMemory> memory_ = SharedMemory();
  mutable std::mutex mutex_;
  std::map<const char*, Block> blocks_;
  uint64_t next_ = 1;
};

class Server {
 public:
  Server(UniqueFd socket, const StageFactory& make_stage)
      : socket_(std::move(socket)), make_stage_(make_stage) {}

  void Serve() {
    const pid_t parent = getppid();
    for (;;) {
      auto frame = socket_.Receive(kParentCheck);
      if (!frame) return;
      if (!*frame) {
        if (getppid() != parent) return;
        continue;
      }
      if (auto answered = Answer(**frame); !answered) return;
    }
  }

 private:
  Result<void> Answer(const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::kOpen:
        return Open(frame);
      case FrameKind::kRelease:
        given_.erase(frame.about.at("token").get<uint64_t>());
        return {};
      default:
        break;
    }
    if (!loader_) return Error{ErrorCode::kInternal, "the loader's process was not told what to open", ""};
    switch (frame.kind) {
      case FrameKind::kNext:
        return Next(milliseconds(frame.about.at("patience_ms").get<int64_t>()));
      case FrameKind::kSetEpoch:
        loader_->SetEpoch(frame.about.at("epoch"));
        return Say(FrameKind::kDone, json::object());
      case FrameKind::kRestore: {
        auto state = LoaderState::FromJson(frame.about.at("state").get<std::string>());
        if (!state) return Fail(state.error());
        if (auto restored = loader_->Restore(*state); !restored) return Fail(restored.error());
        return Say(FrameKind::kDone, json::object());
      }
      default:
        return Error{ErrorCode::kInternal, "unknown request", ""};
    }
  }

  Result<void> Open(const Frame& frame) {
    auto options = OptionsFromJson(frame.about.at("options").get<std::string>());
    if (!options) return Fail(options.error());
    RowFunction stage;
    if (!frame.bytes.empty()) {
      auto made = make_stage_(frame.bytes);
      if (!made) return Fail(made.error());
      stage = *made;
    }
    auto opened = Loader::Open(*options, stage, memory_);
    if (!opened) return Fail(opened.error());
    loader_.emplace(std::move(*opened));
    return Say(FrameKind::kDone, {{"class_names", loader_->class_names()},
                                  {"samples", loader_->samples()},
                                  {"batches_per_epoch", loader_->batches_per_epoch()}});
  }

  Result<void> Next(milliseconds patience) {
    for (const auto end = std::chrono::steady_clock::now() + patience;;) {
      auto batch = loader_->Next(kReleaseCheck);
      if (batch) return *batch ? Give(std::move(**batch)) : Say(FrameKind::kEnd, json::object());
      if (batch.error().code != ErrorCode::kTimeout) return Fail(batch.error());
      if (auto taken = TakeReleases(); !taken) return taken;
      if (std::chrono::steady_clock::now() >= end) return Say(FrameKind::kNotYet, json::object());
    }
  }

  // While the client waits for its response, only releases can arrive.
  Result<void> TakeReleases() {
    for (;;) {
      auto frame = socket_.Receive(milliseconds(0));
      if (!frame) return frame.error();
      if (!*frame) return {};
      if ((*frame)->kind != FrameKind::kRelease)
        return Error{ErrorCode::kInternal, "a request during another one", ""};
      given_.erase((*frame)->about.at("token").get<uint64_t>());
    }
  }

  Result<void> Give(Batch batch) {
    std::vector<int> fds;
    std::string bytes;
    const auto append = [&bytes](const void* data, size_t size) {
      bytes.append(static_cast<const char*>(data), size);
    };
    append(batch.sample_ids.data(), batch.sample_ids.size() * sizeof(uint64_t));
    append(batch.valid.data(), batch.valid.size());
    json about = {{"token", next_token_},
                  {"rows", batch.rows},
                  {"epoch", batch.epoch},
                  {"index", batch.index},
                  {"freed", memory_->TakeFreed(known_)}};
    json& new_blocks = about["new_blocks"] = json::array();
    json& fields = about["fields"] = json::array();
    for (const BatchField& field : batch.fields) {
      json said = {{"name", field.name},
                   {"kind", static_cast<int>(field.kind)},
                   {"dtype", NameOf(field.dtype)},
                   {"shape", field.shape}};
      if (field.kind == FieldKind::kTensor && field.data) {
        const auto place = memory_->PlaceOf(field.data);
        if (known_.emplace(place.block, true).second) {
          fds.push_back(place.fd);
          new_blocks.push_back({place.block, place.bytes});
        }
        said["block"] = place.block;
        said["offset"] = place.offset;
      }
      json& lengths = said["lengths"] = json::array();
      for (const std::string_view item : field.items) {
        lengths.push_back(item.size());
        append(item.data(), item.size());
      }
      fields.push_back(std::move(said));
    }
    given_.emplace(next_token_++, std::move(batch));
    return Say(FrameKind::kBatch, std::move(about), bytes, fds);
  }

  Result<void> Fail(const Error& error) { return Say(FrameKind::kFailed, {{"error", ErrorToJson(error)}}); }

  Result<void> Say(FrameKind kind, json about, std::string_view bytes = {},
                   const std::vector<int>& fds = {}) {
    if (loader_) {
      about["state"] = loader_->State().ToJson();
      about["stats"] = StatsToJson(loader_->Stats());
      json& messages = about["messages"] = json::array();
      for (const Message& message : loader_->TakeMessages())
        messages.push_back({static_cast<int>(message.severity), message.text});
      AddNewBadSamples(about);
    }
    return socket_.Send(kind, about, bytes, fds);
  }

  void AddNewBadSamples(json& about) {
    if (about["stats"]["bad_samples"] == bad_samples_known_) return;
    bad_samples_known_ = about["stats"]["bad_samples"];
    const std::vector<BadSample> all = loader_->bad_samples();
    json& fresh = about["bad_samples"] = json::array();
    for (; bad_samples_said_ < all.size(); ++bad_samples_said_) {
      const BadSample& bad = all[bad_samples_said_];
      fresh.push_back({bad.epoch, bad.id, bad.name, ErrorToJson(bad.error)});
    }
  }

  FrameSocket socket_;
  const StageFactory& make_stage_;
  const std::shared_ptr<NumberedMemory> memory_ = std::make_shared<NumberedMemory>();
  std::optional<Loader> loader_;
  std::map<uint64_t, Batch> given_;  // by token, until the client releases them
  uint64_t next_token_ = 1;
  std::map<uint64_t, bool> known_;  // blocks that the client has mapped
  size_t bad_samples_said_ = 0;
  uint64_t bad_samples_known_ = 0;
};

}  // namespace

void ServeLoader(UniqueFd socket, const StageFactory& make_stage) {
  Server(std::move(socket), make_stage).Serve();
}

}  // namespace fullbore::loader
