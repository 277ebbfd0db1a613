// What the containers share: how each one is opened, and where they put what they read.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "fullbore/loader/source.h"
#include "loader/core/store.h"

namespace fullbore::loader {

struct Opening {
  SourceOptions options;
  std::vector<std::string> paths;  // expanded; at least one
  std::shared_ptr<Store> store;    // of paths[0]
};

using OpenedSource = Result<std::unique_ptr<Source>>;
OpenedSource OpenFolder(const Opening& opening);
OpenedSource OpenList(const Opening& opening);
OpenedSource OpenTar(const Opening& opening);
OpenedSource OpenTfRecord(const Opening& opening);
OpenedSource OpenHdf5(const Opening& opening);

// Messages from any thread, kept until they are taken.
class MessageBox {
 public:
  void Add(Message::Severity severity, std::string text);
  std::vector<Message> Take();

 private:
  std::mutex mutex_;
  std::vector<Message> messages_;
};

// Calls `work` for 0 to count - 1, several at once, because indexing waits for the storage, not for the CPU.
// Returns the error of the lowest number that failed.
Result<void> ForEachFile(size_t count, const std::function<Result<void>(size_t number)>& work);

// The container's own messages, then those of the store.
std::vector<Message> TakeAll(MessageBox& box, Store& store);

// Makes `storage` at least `bytes` large; if it already is, it is not cleared.
std::span<uint8_t> RoomIn(std::vector<uint8_t>& storage, size_t bytes);

}  // namespace fullbore::loader
