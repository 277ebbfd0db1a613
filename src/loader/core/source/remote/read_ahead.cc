#include "loader/core/source/remote/read_ahead.h"

#include <algorithm>

namespace fullbore::loader::remote {

Result<void> ReadAhead::Read(const StoredFile& file, uint64_t offset, std::span<uint8_t> out,
                             const Fetch& fetch, const Cancellation::Token& token) {
  bool ours = false;
  const auto window = WindowFor(file, offset, out.size(), ours);
  if (window == nullptr) return fetch(offset, out);
  if (ours) {
    auto outcome = fetch(window->begin, window->bytes);
    std::lock_guard lock(mutex_);
    window->outcome = outcome;
    window->ended = true;
    landed_.notify_all();
  } else {
    std::unique_lock lock(mutex_);
    landed_.wait(lock, [&] { return window->ended || token.cancelled(); });
    // A window may have failed for reasons of another read (cancelled, or bytes that only that one wanted).
    if (!window->ended || !window->outcome) {
      lock.unlock();
      return fetch(offset, out);
    }
  }
  if (!window->outcome) return window->outcome;  // ended: no thread writes to it any more
  std::copy_n(window->bytes.begin() + static_cast<ptrdiff_t>(offset - window->begin), out.size(),
              out.begin());
  return {};
}

void ReadAhead::Wake() {
  { std::lock_guard lock(mutex_); }
  landed_.notify_all();
}

ReadAhead::File& ReadAhead::Find(const std::string& name) {
  const auto [found, added] = files_.try_emplace(name);
  if (added) {
    uses_.push_front(name);
    found->second.use = uses_.begin();
    if (files_.size() > kMaxFiles) {
      files_.erase(uses_.back());
      uses_.pop_back();
    }
  } else {
    uses_.splice(uses_.begin(), uses_, found->second.use);
  }
  return found->second;
}

std::shared_ptr<ReadAhead::Window> ReadAhead::WindowFor(const StoredFile& file, uint64_t offset,
                                                        uint64_t size, bool& ours) {
  std::lock_guard lock(mutex_);
  File& state = Find(file.path + '\n' + file.version);
  if (state.window && state.window->Holds(offset, size) &&
      (!state.window->ended || state.window->outcome.ok())) {
    state.next = std::max(state.next, offset + size);
    return state.window;
  }
  const uint64_t end = std::max(state.next, state.window ? state.window->end : 0);
  // Gaps are allowed: an indexer reads the headers of a tar file and skips what is in between.
  const uint64_t reach = std::max({state.window_bytes, size, kFirstBytes});
  const bool follows = end != 0 && offset + size > end && offset <= end + reach && offset + kMaxBytes > end;
  // Another thread was faster; this does not end the sequence.
  const bool late = offset + size <= end && offset + kMaxBytes > end;
  if (!follows || size >= kMaxBytes) {
    if (!late) {
      state.next = offset + size;
      state.window = nullptr;
      if (!follows) state.window_bytes = 0;
    }
    return nullptr;
  }
  state.next = offset + size;
  state.window_bytes = std::min(kMaxBytes, std::max(kFirstBytes, state.window_bytes * 2));
  auto window = std::make_shared<Window>();
  window->begin = offset;
  window->end = std::min(file.bytes, offset + std::max(size, state.window_bytes));
  window->bytes.resize(window->end - window->begin);
  state.window = window;
  ours = true;
  return window;
}

}  // namespace fullbore::loader::remote
