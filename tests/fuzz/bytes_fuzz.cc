// Bytes that may be packed or not, their content as an archive, its members unpacked, and what they are called.
#include <cstdint>

#include "explain/ingest/archive_reader.h"
#include "explain/ingest/byte_source.h"
#include "explain/ingest/foreign_formats.h"

namespace {

using fullbore::ingest::ByteSource;

// A few kilobytes of gzip can hold gigabytes of zeros: what a reader does with them shows earlier.
constexpr size_t kMaxBytes = 4 << 20;

void ReadAll(ByteSource& source) {
  char buffer[4096];
  for (size_t total = 0; total < kMaxBytes;) {
    const auto got = source.Read(buffer, sizeof buffer);
    if (!got || *got == 0) return;
    total += *got;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadAll(*fullbore::ingest::BytesInMemory(bytes));
  (void)fullbore::ingest::ForeignFormat("x.pftrace", bytes);
  fullbore::ingest::ArchiveReader archive(fullbore::ingest::BytesInMemory(bytes));
  for (int members = 0; members < 100; ++members) {
    const auto next = archive.Next();
    if (!next || !*next) break;
    if (members % 2 != 0) continue;
    const auto contents = fullbore::ingest::Unpack(archive.Contents());
    if (contents) ReadAll(**contents);
  }
  return 0;
}
