// Reads the channels that training processes write (record/channel.h), by polling: no process
// of the user ever waits for us.
//
// Owned and called by the recorder thread alone. A poll costs a directory listing and one look at each ring.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "record/channel.h"

namespace fullbore::collect {

// One process's channel: its ring, mapped, and its text, read as it grows.
class Channel {
 public:
  // Fails for a file that is not a channel (perhaps not yet: its owner may still be writing the header).
  static Result<std::unique_ptr<Channel>> Open(const std::string& ring_path);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  const record::ChannelHeader& header() const { return header_; }
  std::vector<record::ChannelRecord> ReadEvents();  // the new ones, in the order written
  std::vector<nlohmann::json> ReadLines();          // the new ones that parse as an object
  uint64_t lost_events() const { return lost_; }    // overwritten before we read them
  // The ring holds bytes that its owner cannot have written: nothing more is read from it.
  bool broken() const { return broken_; }

  // Whether the owner has died; true only at the second look, so that its last records have been
  // read in between. Owners in another PID namespace (a container) are never reported dead:
  // their pids mean nothing here.
  bool IsOver(int64_t now_ns);
  const std::string& text_path() const { return text_path_; }

 private:
  Channel() = default;

  record::ChannelHeader header_{};
  const char* map_ = nullptr;
  size_t map_bytes_ = 0;
  uint64_t next_sequence_ = 1;
  uint64_t lost_ = 0;
  bool broken_ = false;
  bool owner_seen_ = false;
  bool owner_gone_ = false;
  int64_t last_news_ns_ = 0;
  UniqueFd ring_;
  std::string text_path_;
  UniqueFd text_;
  std::string partial_line_;
};

// All channels in a directory, by path. Those of dead processes are removed as the run goes on: workers are
// created anew each epoch, and a day has many epochs.
class ChannelDirectory {
 public:
  explicit ChannelDirectory(std::string directory) : directory_(std::move(directory)) {}

  // Opens channels that appeared since the last call, and returns them.
  std::vector<Channel*> Discover();
  // Closes and removes the channels whose owners are gone and which have been read to the end.
  void RemoveFinished(int64_t now_ns);
  // What processes wrote that could not create a ring: why the hook did not start there.
  std::vector<nlohmann::json> LinesWithoutRing() const;
  const std::map<std::string, std::unique_ptr<Channel>>& channels() const { return channels_; }

 private:
  std::string directory_;
  std::map<std::string, std::unique_ptr<Channel>> channels_;
};

}  // namespace fullbore::collect
