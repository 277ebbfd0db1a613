// What sources of several consecutive files share: tar shards, TFRecord and HDF5 files. Their samples are
// numbered across all files; blocks() are the files.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "loader/core/source/container.h"

namespace fullbore::loader {

// Filled by one thread while the source is opened, except `messages`; constant after that.
class ShardedSource : public Source {
 public:
  explicit ShardedSource(std::shared_ptr<Store> its_store) : store(std::move(its_store)) {}

  uint64_t size() const override { return first_of_.back(); }
  const std::vector<SourceField>& fields() const override { return source_fields; }
  const std::vector<std::string>& class_names() const override { return classes; }
  std::vector<uint64_t> blocks() const override;
  void Cancel() override { store->Cancel(); }
  std::vector<Message> TakeMessages() override { return TakeAll(messages, *store); }

  void AppendFile(uint64_t samples) { first_of_.push_back(first_of_.back() + samples); }

  const std::shared_ptr<Store> store;
  std::vector<SourceField> source_fields;
  std::vector<std::string> classes;
  mutable MessageBox messages;

 protected:
  struct Place {
    size_t file = 0;
    uint64_t index = 0;  // of the sample within it
  };
  Place Find(uint64_t id) const;

 private:
  std::vector<uint64_t> first_of_ = {0};  // first sample of each file; then the number of all
};

// kCorrupt: the files have no samples; includes the first of the messages that say why.
Error NoSamples(const Opening& opening, ShardedSource& source, const char* called, const char* hint);

// Fills `shards`, one for each path: sets its `file` and calls `index` on it, several at once. Then numbers
// the samples() of all.
template <typename Shard, typename Index>
Result<void> IndexShards(const Opening& opening, ShardedSource& source, std::vector<Shard>& shards,
                         const Index& index) {
  shards.resize(opening.paths.size());
  auto indexed = ForEachFile(shards.size(), [&](size_t number) -> Result<void> {
    auto file = opening.store->Stat(opening.paths[number]);
    if (!file) return file.error();
    shards[number].file = std::move(*file);
    return index(shards[number]);
  });
  if (!indexed) return indexed;
  for (const Shard& shard : shards) source.AppendFile(shard.samples());
  return {};
}

}  // namespace fullbore::loader
