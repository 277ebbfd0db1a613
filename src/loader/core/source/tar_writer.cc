#include "loader/core/source/tar_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/crc32c.h"
#include "base/guarded_file.h"
#include "loader/core/source/tar_format.h"

namespace fullbore::loader {

namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr char kPartSuffix[] = ".part";

Error WriteError(const std::string& path, int error_number) {
  Error error = ErrnoError(fmt::format("cannot write '{}'", path), error_number);
  if (error.code == ErrorCode::kNoSpace)
    error.hint = "the unfinished file was removed; make room, or choose another disk";
  return error;
}

Result<UniqueFd> CreatePart(const std::string& path) {
  auto fd = CreateFileAnew(path + kPartSuffix, kOrdinaryFile);
  if (!fd && fd.error().code == ErrorCode::kNoSpace) return WriteError(path, ENOSPC);
  return fd;
}

Result<void> WriteFully(int fd, const std::string& path, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return WriteError(path, errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

// Synced to disk before it gets its name, so that a crash leaves no empty shard that looks complete.
Result<void> Publish(UniqueFd fd, const std::string& path) {
  const std::string part = path + kPartSuffix;
  if (fdatasync(fd.get()) != 0) return WriteError(path, errno);
  if (close(fd.release()) != 0) return WriteError(path, errno);
  if (std::rename(part.c_str(), path.c_str()) != 0) return WriteError(path, errno);
  return {};
}

}  // namespace

Result<void> WriteWholeFile(const std::string& path, std::string_view bytes) {
  auto fd = CreatePart(path);
  if (!fd) return fd.error();
  auto written = WriteFully(fd->get(), path, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (written) written = Publish(std::move(*fd), path);
  if (!written) unlink((path + kPartSuffix).c_str());
  return written;
}

Result<TarWriter> TarWriter::Create(const std::string& path) {
  auto fd = CreatePart(path);
  if (!fd) return fd.error();
  return TarWriter(path, std::move(*fd));
}

TarWriter::~TarWriter() {
  if (fd_.valid()) unlink((path_ + kPartSuffix).c_str());
}

uint64_t TarWriter::BytesOf(std::span<const Member> members) {
  uint64_t sum = 0;
  for (const Member& member : members) sum += kTarBlock + TarPadded(member.bytes.size());
  return sum;
}

Result<void> TarWriter::Add(std::string_view key, std::span<const Member> members) {
  for (const Member& member : members) {
    if (key.size() + 1 + member.extension.size() > kMaxTarNameBytes ||
        member.bytes.size() > kMaxTarMemberBytes) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("'{}.{}' with {} bytes does not fit in a tar file", key, member.extension,
                               member.bytes.size()),
                   fmt::format("a name may have at most {} bytes, a file at most 8 GiB", kMaxTarNameBytes)};
    }
  }
  std::vector<TarPart> parts;
  for (const Member& member : members) {
    const auto header = MakeTarHeader(fmt::format("{}.{}", key, member.extension), member.bytes.size());
    parts.push_back({member.extension, bytes_, member.bytes.size(), Crc32c(header)});
    static constexpr std::array<uint8_t, kTarBlock> kZeros{};
    const auto padding = std::span(kZeros).first(TarPadded(member.bytes.size()) - member.bytes.size());
    for (const std::span<const uint8_t> bytes : {std::span<const uint8_t>(header), member.bytes, padding}) {
      if (auto written = Write(bytes); !written) return written;
    }
  }
  index_.Add({key, parts});
  return {};
}

Result<void> TarWriter::Write(std::span<const uint8_t> bytes) {
  bytes_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) {
    if (auto flushed = Flush(); !flushed) return flushed;
  }
  if (bytes.size() >= kBufferBytes) return WriteFully(fd_.get(), path_, bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> TarWriter::Flush() {
  auto written = WriteFully(fd_.get(), path_, buffer_);
  buffer_.clear();
  return written;
}

Result<void> TarWriter::Finish() {
  constexpr std::array<uint8_t, 2 * kTarBlock> kEnd{};
  if (auto written = Write(kEnd); !written) return written;
  if (auto flushed = Flush(); !flushed) return flushed;
  // The index first: if the disk is full now, the shard that would lack its index is removed, too.
  const std::string index = path_ + ".idx";
  if (auto written = WriteWholeFile(index, index_.Finish(bytes_)); !written) return written;
  UniqueFd fd = std::move(fd_);
  if (auto published = Publish(std::move(fd), path_); !published) {
    unlink((path_ + kPartSuffix).c_str());
    unlink(index.c_str());
    return published;
  }
  return {};
}

}  // namespace fullbore::loader
