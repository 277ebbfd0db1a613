// The bytes of a file as a stream, decompressed on the way: plain, gzip, zstd, xz or bzip2, judged by the first
// bytes, whatever the file is called. One owner, one thread. Memory is a fixed pair of buffers for any size of file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fullbore::ingest {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Up to `size` bytes into `out`; 0 at the end. An error is final and says at which byte of the file it
  // occurred.
  virtual Result<size_t> Read(char* out, size_t size) = 0;

  // How far the file itself (not the text in it) has been read, and its size; 0 if unknown.
  virtual int64_t file_position() const { return 0; }
  virtual int64_t file_size() const { return 0; }
};

Result<std::unique_ptr<ByteSource>> OpenBytes(const std::string& path);

// What `packed` holds if that is compressed, else itself: for the members of archives.
Result<std::unique_ptr<ByteSource>> Unpack(std::unique_ptr<ByteSource> packed);

// Reads the first bytes, fewer if there are no more, and puts them back before what follows.
Result<std::string> HeadOf(ByteSource& source, size_t bytes);
std::unique_ptr<ByteSource> Rejoined(std::string head, std::unique_ptr<ByteSource> rest);

// Traces compress to a tenth of their size, artificial ones to a fiftieth. A file that expands far more was made to
// keep its reader busy for hours.
class Expansion {
 public:
  static const std::string kTooMuch;  // an error's text

  // Whether a file may give so many bytes more after it was read up to this position.
  bool Allows(size_t bytes, int64_t packed_position);

 private:
  static constexpr int64_t kMostTimes = 500;
  static constexpr int64_t kAlways = 64 << 20;  // bytes: this much is read in no time at all

  int64_t unpacked_ = 0;
};

// For tests and fuzzing; `bytes` outlives the source. Compressed bytes are recognised here too.
std::unique_ptr<ByteSource> BytesInMemory(std::string_view bytes);

}  // namespace fullbore::ingest
