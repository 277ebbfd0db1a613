// Writes tar shards: a file, its index beside it, both under a temporary name until they are whole.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "loader/core/source/tar_index.h"

namespace fullbore::loader {

// One shard. Nothing is left behind where Finish was not reached. One thread.
class TarWriter {
 public:
  // Writes to "PATH.part" until Finish.
  static Result<TarWriter> Create(const std::string& path);
  TarWriter(TarWriter&&) noexcept = default;
  TarWriter& operator=(TarWriter&&) = delete;
  ~TarWriter();

  struct Member {
    std::string_view extension;
    std::span<const uint8_t> bytes;
  };
  // kUnsupported, and nothing added, where `key` with an extension or a member is longer than a tar file can
  // have it. kNoSpace where the disk is full.
  Result<void> Add(std::string_view key, std::span<const Member> members);
  Result<void> Finish();

  uint64_t bytes() const { return bytes_; }  // so far
  // What Add would add.
  static uint64_t BytesOf(std::span<const Member> members);

 private:
  TarWriter(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Result<void> Write(std::span<const uint8_t> bytes);
  Result<void> Flush();

  std::string path_;
  UniqueFd fd_;
  std::vector<uint8_t> buffer_;
  TarIndexBuilder index_;
  uint64_t bytes_ = 0;
};

// Through "PATH.part", so that the file is either whole or not there.
Result<void> WriteWholeFile(const std::string& path, std::string_view bytes);

}  // namespace fullbore::loader
