#include "loader/core/engine/memory_cache.h"

#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace fullbore::loader {
namespace {

// Fields are kept as offsets into the storage, so that copying the storage restores them.
struct Kept {
  struct Field {
    size_t offset = 0, bytes = 0;
    int64_t integer = 0;
  };
  std::vector<Field> fields;
  std::vector<uint8_t> storage;
};

class MemoryCache : public Source {
 public:
  MemoryCache(std::unique_ptr<Source> source, uint64_t limit_bytes)
      : source_(std::move(source)), limit_bytes_(limit_bytes) {}

  uint64_t size() const override { return source_->size(); }
  const std::vector<SourceField>& fields() const override { return source_->fields(); }
  const std::vector<std::string>& class_names() const override { return source_->class_names(); }
  std::vector<uint64_t> blocks() const override { return source_->blocks(); }
  std::string NameOf(uint64_t id) const override { return source_->NameOf(id); }
  void Cancel() override { source_->Cancel(); }
  std::vector<Message> TakeMessages() override { return source_->TakeMessages(); }

  Result<void> Read(uint64_t id, RawSample& out) const override {
    if (Find(id, out)) return {};
    auto read = source_->Read(id, out);
    if (read.ok()) Keep(id, out);
    return read;
  }

 private:
  // Sharded, so that threads rarely contend for a lock.
  struct Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, std::shared_ptr<const Kept>> samples;  // protected by mutex
  };

  bool Find(uint64_t id, RawSample& out) const {
    std::shared_ptr<const Kept> kept;
    {
      Shard& shard = shards_[id % shards_.size()];
      const std::lock_guard lock(shard.mutex);
      const auto found = shard.samples.find(id);
      if (found == shard.samples.end()) return false;
      kept = found->second;
    }
    out.storage.assign(kept->storage.begin(), kept->storage.end());
    out.fields.resize(kept->fields.size());
    for (size_t i = 0; i < kept->fields.size(); ++i) {
      const Kept::Field& field = kept->fields[i];
      out.fields[i] = {{out.storage.data() + field.offset, field.bytes}, field.integer};
    }
    return true;
  }

  void Keep(uint64_t id, const RawSample& sample) const {
    size_t bytes = sizeof(Kept) + sample.fields.size() * sizeof(Kept::Field);
    for (const FieldValue& field : sample.fields) bytes += field.bytes.size();
    if (used_bytes_.fetch_add(bytes) + bytes > limit_bytes_) {
      used_bytes_.fetch_sub(bytes);
      return;
    }
    auto kept = std::make_shared<Kept>();
    for (const FieldValue& field : sample.fields) {
      kept->fields.push_back({kept->storage.size(), field.bytes.size(), field.integer});
      kept->storage.insert(kept->storage.end(), field.bytes.begin(), field.bytes.end());
    }
    Shard& shard = shards_[id % shards_.size()];
    const std::lock_guard lock(shard.mutex);
    if (!shard.samples.emplace(id, std::move(kept)).second) used_bytes_.fetch_sub(bytes);
  }

  const std::unique_ptr<Source> source_;
  const uint64_t limit_bytes_;
  mutable std::atomic<uint64_t> used_bytes_ = 0;
  mutable std::array<Shard, 16> shards_;
};

}  // namespace

std::unique_ptr<Source> WithMemoryCache(std::unique_ptr<Source> source, uint64_t limit_bytes) {
  return std::make_unique<MemoryCache>(std::move(source), limit_bytes);
}

}  // namespace fullbore::loader
