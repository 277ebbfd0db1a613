// A loader over a source made for tests: every sample holds its own number, and reads do what a test wants.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "fullbore/loader.h"
#include "fullbore/loader/source.h"

namespace fullbore::loader::testing {

// What a test does to a source while a loader reads it.
struct Behaviour {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, Error> broken;  // by sample
  int unavailable = 0;               // so many reads fail as the storage's fault
  bool stuck = false;                // reads do not return until it is false again
  int inside = 0;                    // reads that are stuck
  bool slow_evens = false;
  std::set<uint64_t> monsters;  // samples with a text larger than any memory: to keep it throws

  void Let(bool go_on) {
    const std::lock_guard lock(mutex);
    stuck = !go_on;
    changed.notify_all();
  }
};

class Numbers : public Source {
 public:
  Numbers(uint64_t size, std::shared_ptr<Behaviour> behaviour)
      : size_(size), behaviour_(std::move(behaviour)) {}

  uint64_t size() const override { return size_; }
  const std::vector<SourceField>& fields() const override {
    static const std::vector<SourceField> fields = {{"value", SourceFieldKind::kArray, DType::kInt64, {2}},
                                                    {"label", SourceFieldKind::kInteger, DType::kInt64, {}},
                                                    {"text", SourceFieldKind::kText, DType::kUInt8, {}}};
    return fields;
  }
  const std::vector<std::string>& class_names() const override {
    static const std::vector<std::string> none;
    return none;
  }
  std::string NameOf(uint64_t id) const override { return fmt::format("number-{}", id); }

  Result<void> Read(uint64_t id, RawSample& out) const override {
    {
      std::unique_lock lock(behaviour_->mutex);
      if (behaviour_->stuck) {
        ++behaviour_->inside;
        behaviour_->changed.notify_all();
        behaviour_->changed.wait(lock, [&] { return !behaviour_->stuck; });
        --behaviour_->inside;
        behaviour_->changed.notify_all();
      }
      if (behaviour_->unavailable > 0) {
        --behaviour_->unavailable;
        return Error{ErrorCode::kUnavailable, "the storage is away", ""};
      }
      const auto broken = behaviour_->broken.find(id);
      if (broken != behaviour_->broken.end()) return broken->second;
    }
    const bool monster = behaviour_->monsters.contains(id);
    if (behaviour_->slow_evens && id % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    const int64_t pair[2] = {static_cast<int64_t>(id), static_cast<int64_t>(id * id)};
    const std::string text = fmt::format("sample {}", id);
    out.storage.resize(sizeof pair + text.size());
    std::memcpy(out.storage.data(), pair, sizeof pair);
    std::memcpy(out.storage.data() + sizeof pair, text.data(), text.size());
    const std::span<const uint8_t> all(out.storage);
    out.fields = {
        {all.first(sizeof pair), 0}, {{}, static_cast<int64_t>(id) + 1000}, {all.subspan(sizeof pair), 0}};
    if (monster) out.fields[2].bytes = {out.storage.data(), size_t{1} << 50};
    return {};
  }

 private:
  const uint64_t size_;
  const std::shared_ptr<Behaviour> behaviour_;
};

class LoaderTest : public ::testing::Test {
 protected:
  Loader Over(uint64_t samples, const LoaderOptions& options, RowFunction user_stage = nullptr) {
    auto loader =
        Loader::Over(std::make_unique<Numbers>(samples, behaviour_), options, std::move(user_stage));
    EXPECT_TRUE(loader.ok()) << loader.error().text;
    return std::move(*loader);
  }

  // The sample ids of the valid rows, after a look at every row's content.
  static std::vector<uint64_t> IdsOf(const Batch& batch) {
    std::vector<uint64_t> ids;
    const auto* values = static_cast<const int64_t*>(batch.fields[0].data);
    const auto* labels = static_cast<const int64_t*>(batch.fields[1].data);
    for (size_t row = 0; row < static_cast<size_t>(batch.rows); ++row) {
      const uint64_t id = batch.sample_ids[row];
      EXPECT_EQ(values[2 * row], static_cast<int64_t>(id));
      EXPECT_EQ(values[2 * row + 1], static_cast<int64_t>(id * id));
      EXPECT_EQ(labels[row], static_cast<int64_t>(id) + 1000);
      EXPECT_EQ(batch.fields[2].items[row], fmt::format("sample {}", id));
      if (batch.valid[row]) ids.push_back(id);
    }
    return ids;
  }

  static std::vector<std::vector<uint64_t>> Epoch(Loader& loader, size_t batches = ~size_t{0}) {
    std::vector<std::vector<uint64_t>> all;
    while (all.size() < batches) {
      auto batch = loader.Next();
      EXPECT_TRUE(batch.ok()) << batch.error().text;
      if (!batch.ok() || !*batch) break;
      all.push_back(IdsOf(**batch));
    }
    return all;
  }

  static std::multiset<uint64_t> Flat(const std::vector<std::vector<uint64_t>>& batches) {
    std::multiset<uint64_t> all;
    for (const auto& batch : batches) all.insert(batch.begin(), batch.end());
    return all;
  }
  static std::multiset<uint64_t> UpTo(uint64_t n) {
    std::multiset<uint64_t> all;
    for (uint64_t i = 0; i < n; ++i) all.insert(i);
    return all;
  }

  std::shared_ptr<Behaviour> behaviour_ = std::make_shared<Behaviour>();
};

}  // namespace fullbore::loader::testing
