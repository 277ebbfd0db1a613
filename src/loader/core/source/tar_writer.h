// Writes tar shards: a file and its index beside it, both under temporary names until they are complete.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "loader/core/source/tar_index.h"

namespace fullbore::loader {

// One shard. Leaves nothing behind unless Finish succeeds. Not thread-safe.
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
  // kUnsupported, and nothing is added: `key` with an extension, or a member, is too long for a tar file.
  // kNoSpace: the disk is full.
  Result<void> Add(std::string_view key, std::span<const Member> members);
  Result<void> Finish();

  uint64_t bytes() const { return bytes_; }  // so far
  // The bytes that Add would add.
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

// Written through "PATH.part", so that the file is either complete or absent.
Result<void> WriteWholeFile(const std::string& path, std::string_view bytes);

}  // namespace fullbore::loader
