#include "explain/memory/batch.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace fullbore::memory {

namespace {

constexpr size_t kQuarters = 4;
constexpr uint8_t kInEachQuarter = 0xf;

class BatchJudge {
 public:
  BatchJudge(const MemorySnapshot& snapshot, const History& history, size_t events)
      : snapshot_(snapshot), events_(events) {
    for (const Life& life : history.lives) NoteRequest(life);
    for (const Life& life : history.lives) {
      if (!Stays(life)) continue;
      lasting_.insert(KeyOf(life));
      lasting_bytes_.insert(life.bytes);
    }
    for (const Life& life : history.lives) {
      if (IsOfForward(life)) forward_bytes_.insert(life.bytes);
    }
  }

  bool Grows(const Life& life) {
    if (!ComesAgain(life) || lasting_.contains(KeyOf(life))) return false;
    if (!lasting_bytes_.contains(life.bytes) || IsOfForward(life)) return true;
    return life.stack == 0 && life.freed_stack == 0 && forward_bytes_.contains(life.bytes);
  }

 private:
  using Key = std::pair<StackIndex, int64_t>;  // what one stack asks for

  struct Requests {
    bool given_back = false;
    uint8_t quarters = 0;  // of the record, in which it is asked for
  };

  static Key KeyOf(const Life& life) { return {life.stack, life.bytes}; }

  void NoteRequest(const Life& life) {
    if (!life.born) return;
    Requests& requests = requests_[KeyOf(life)];
    requests.given_back |= life.freed.has_value();
    requests.quarters |= static_cast<uint8_t>(1U << (*life.born * kQuarters / events_));
  }

  bool IsInEachQuarter(const Life& life) const {
    const auto found = requests_.find(KeyOf(life));
    return found != requests_.end() && found->second.quarters == kInEachQuarter;
  }

  // Given back, as what was made for a step is, or asked for again and again, where each step keeps one.
  bool ComesAgain(const Life& life) const {
    const auto found = requests_.find(KeyOf(life));
    return found != requests_.end() && (found->second.given_back || found->second.quarters == kInEachQuarter);
  }

  // Through half of the record, or to its end where its like never went: a snapshot may be taken within a step.
  bool Stays(const Life& life) const {
    if (IsInEachQuarter(life)) return false;
    const size_t lived = life.freed.value_or(events_) - life.born.value_or(0);
    const bool is_known = life.born || !life.freed;
    return (is_known && lived * 2 > events_) || (!life.freed && !ComesAgain(life));
  }

  // Asked for by a module's forward pass, in each step.
  bool IsOfForward(const Life& life) {
    if (life.stack == 0 || !ComesAgain(life) || lasting_.contains(KeyOf(life))) return false;
    const auto [known, is_new] = in_module_.try_emplace(life.stack, false);
    if (is_new) known->second = IsInModule(life.stack);
    return known->second;
  }

  bool IsInModule(StackIndex stack) const {
    return std::ranges::any_of(snapshot_.stacks[stack], [&](uint32_t index) {
      const Frame& frame = snapshot_.frames[index];
      return std::string_view(frame.file).ends_with("torch/nn/modules/module.py") &&
             std::string_view(frame.function).find("_call_impl") != std::string_view::npos;
    });
  }

  const MemorySnapshot& snapshot_;
  const size_t events_;
  std::map<Key, Requests> requests_;
  std::set<Key> lasting_;
  std::set<int64_t> lasting_bytes_, forward_bytes_;
  std::map<StackIndex, bool> in_module_;
};

}  // namespace

std::vector<bool> GrowWithTheBatch(const MemorySnapshot& snapshot, const History& history, size_t events) {
  BatchJudge judge(snapshot, history, events);
  std::vector<bool> grows;
  grows.reserve(history.lives.size());
  for (const Life& life : history.lives) grows.push_back(judge.Grows(life));
  return grows;
}

}  // namespace fullbore::memory
