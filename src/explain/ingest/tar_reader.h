// The files inside a tar stream, one after the other, without unpacking.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "explain/ingest/byte_source.h"

namespace fullbore::ingest {

class TarReader {
 public:
  explicit TarReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  // Moves to the next regular file; false at the end. What was left of the one before is skipped.
  Result<bool> Next();

  const std::string& name() const { return name_; }
  std::unique_ptr<ByteSource> Contents();  // of the current file, once; dies with the reader or with Next()

 private:
  class Member;

  Result<bool> ReadBlock(char* block);
  Result<bool> Skip(int64_t bytes);

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  int64_t left_ = 0;     // of the current file
  int64_t padding_ = 0;  // behind it
};

}  // namespace fullbore::ingest
