#include "explain/ingest/tar_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace fullbore::ingest {
namespace {

// POSIX ustar header: name at 0 (100), size in octal at 124 (12), type at 156, prefix of the name at 345
// (155).
constexpr int64_t kBlock = 512;

int64_t Octal(const char* field, size_t size) {
  int64_t value = 0;
  for (size_t i = 0; i < size && field[i] != '\0' && field[i] != ' '; ++i) {
    if (field[i] < '0' || field[i] > '7') return -1;
    value = value * 8 + (field[i] - '0');
  }
  return value;
}

std::string Text(const char* field, size_t size) { return std::string(field, strnlen(field, size)); }

}  // namespace

class TarReader::Member : public ByteSource {
 public:
  explicit Member(TarReader* tar) : tar_(tar) {}
  Result<size_t> Read(char* out, size_t size) override {
    if (tar_->left_ == 0) return size_t{0};
    auto got = tar_->source_->Read(
        out, static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(size), tar_->left_)));
    if (!got) return got;
    if (*got == 0) return Error{ErrorCode::kCorrupt, "the tar file ends inside '" + tar_->name_ + "'", ""};
    tar_->left_ -= static_cast<int64_t>(*got);
    return got;
  }
  int64_t file_position() const override { return tar_->source_->file_position(); }
  int64_t file_size() const override { return tar_->source_->file_size(); }

 private:
  TarReader* tar_;
};

std::unique_ptr<ByteSource> TarReader::Contents() { return std::make_unique<Member>(this); }

Result<bool> TarReader::Next() {
  for (;;) {
    if (auto skipped = Skip(left_ + padding_); !skipped || !*skipped) return skipped;
    std::array<char, kBlock> header{};
    if (auto read = ReadBlock(header.data()); !read || !*read) return read;
    if (header[0] == '\0') return false;  // the end is marked by empty blocks
    left_ = Octal(header.data() + 124, 12);
    if (left_ < 0)
      return Error{ErrorCode::kCorrupt, "the tar file has a damaged header after '" + name_ + "'", ""};
    padding_ = (kBlock - left_ % kBlock) % kBlock;
    name_ = Text(header.data(), 100);
    const std::string prefix = Text(header.data() + 345, 155);
    if (!prefix.empty()) name_ = prefix + "/" + name_;
    const char type = header[156];
    if (type == '0' || type == '\0') return true;
  }
}

Result<bool> TarReader::ReadBlock(char* block) {
  size_t filled = 0;
  while (filled < kBlock) {
    auto got = source_->Read(block + filled, kBlock - filled);
    if (!got) return got.error();
    if (*got == 0) return false;
    filled += *got;
  }
  return true;
}

Result<bool> TarReader::Skip(int64_t bytes) {
  std::array<char, 16 * kBlock> dropped;
  while (bytes > 0) {
    auto got = source_->Read(dropped.data(), static_cast<size_t>(std::min<int64_t>(bytes, dropped.size())));
    if (!got) return got.error();
    if (*got == 0) return false;
    bytes -= static_cast<int64_t>(*got);
  }
  left_ = padding_ = 0;
  return true;
}

}  // namespace fullbore::ingest
