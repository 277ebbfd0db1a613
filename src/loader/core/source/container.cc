#include "loader/core/source/container.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <system_error>
#include <thread>

namespace fullbore::loader {

void MessageBox::Add(Message::Severity severity, std::string text) {
  const std::lock_guard lock(mutex_);
  messages_.push_back({severity, std::move(text)});
}

std::vector<Message> MessageBox::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

Result<void> ForEachFile(size_t count, const std::function<Result<void>(size_t number)>& work) {
  constexpr size_t kThreads = 16;
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::vector<std::optional<Error>> errors(count);
  const auto run = [&] {
    for (size_t number; !failed && (number = next++) < count;) {
      auto done = work(number);
      if (done) continue;
      errors[number] = done.error();
      failed = true;
    }
  };
  std::vector<std::thread> threads;
  try {
    for (size_t i = 1; i < std::min(kThreads, count); ++i) threads.emplace_back(run);
  } catch (const std::system_error&) {
    // As many threads as can be started: this one works alone if it must.
  }
  run();
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) return *error;
  }
  return {};
}

std::vector<Message> TakeAll(MessageBox& box, Store& store) {
  std::vector<Message> messages = box.Take();
  std::vector<Message> of_store = store.TakeMessages();
  std::move(of_store.begin(), of_store.end(), std::back_inserter(messages));
  return messages;
}

std::span<uint8_t> RoomIn(std::vector<uint8_t>& storage, size_t bytes) {
  if (storage.size() < bytes) storage.resize(bytes);
  return std::span(storage).first(bytes);
}

}  // namespace fullbore::loader
