#include "record/columns.h"

#include <zstd.h>

#include "record/limits.h"

namespace fullbore::record {

namespace {

constexpr int kZstdLevel = 3;

uint64_t ZigZag(uint64_t delta) { return (delta << 1) ^ (0 - (delta >> 63)); }
uint64_t UnZigZag(uint64_t coded) { return (coded >> 1) ^ (0 - (coded & 1)); }

void PutVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void PutColumn(std::string& out, const Column& column) {
  const size_t n = column.values.size();
  PutVarint(out, n);
  out.push_back(column.present.empty() ? 0 : 1);
  if (!column.present.empty()) {
    std::string bits((n + 7) / 8, '\0');
    for (size_t i = 0; i < n; ++i) {
      if (column.present[i]) bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << (i % 8));
    }
    out += bits;
  }
  uint64_t before = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!column.present.empty() && !column.present[i]) continue;
    const auto value = static_cast<uint64_t>(column.values[i]);
    PutVarint(out, ZigZag(value - before));
    before = value;
  }
}

// Reads a text that may end anywhere; `failed` stays set once a read has failed.
struct Cursor {
  std::string_view rest;
  bool failed = false;

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest.front());
      rest.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    failed = true;
    return 0;
  }

  std::string_view Bytes(uint64_t count) {
    if (count > rest.size()) failed = true;
    if (failed) return {};
    const std::string_view bytes = rest.substr(0, count);
    rest.remove_prefix(count);
    return bytes;
  }
};

// A column without present values takes an eighth of a byte per row: its count is
// believed within limits only.
Column TakeColumn(Cursor& cursor, uint64_t* values_left) {
  Column column;
  const uint64_t n = cursor.Varint();
  const std::string_view flag = cursor.Bytes(1);
  if (cursor.failed || n > kMaxRowsOfBlock || n > *values_left) {
    cursor.failed = true;
    return column;
  }
  *values_left -= n;
  if (flag[0] != 0) {
    const std::string_view bits = cursor.Bytes((n + 7) / 8);
    if (cursor.failed) return column;
    column.present.resize(n);
    for (uint64_t i = 0; i < n; ++i) column.present[i] = (bits[i / 8] >> (i % 8)) & 1;
  } else if (n > cursor.rest.size()) {  // at least a byte per value: do not allocate for a damaged count
    cursor.failed = true;
    return column;
  }
  column.values.resize(n);
  uint64_t before = 0;
  for (uint64_t i = 0; i < n && !cursor.failed; ++i) {
    if (!column.present.empty() && !column.present[i]) continue;
    before += UnZigZag(cursor.Varint());
    column.values[i] = static_cast<int64_t>(before);
  }
  return column;
}

Result<std::string> Decompress(std::string_view bytes) {
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > kMaxBlockBytes) {
    return Error{ErrorCode::kCorrupt, "a block of columns is not a zstd frame", ""};
  }
  std::string raw(size, '\0');
  const size_t got = ZSTD_decompress(raw.data(), raw.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got) || got != size) {
    return Error{ErrorCode::kCorrupt, std::string("a block of columns is damaged: ") + ZSTD_getErrorName(got),
                 ""};
  }
  return raw;
}

}  // namespace

std::string EncodeColumns(const std::vector<Column>& columns) {
  std::string raw;
  PutVarint(raw, columns.size());
  for (const Column& column : columns) PutColumn(raw, column);
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  const size_t size = ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), kZstdLevel);
  FB_CHECK(!ZSTD_isError(size));
  packed.resize(size);
  return packed;
}

Result<std::vector<Column>> DecodeColumns(std::string_view bytes) {
  const auto raw = Decompress(bytes);
  if (!raw) return raw.error();
  Cursor cursor{*raw};
  const uint64_t count = cursor.Varint();
  if (count > kMaxColumnsOfBlock) cursor.failed = true;
  uint64_t values_left = kMaxValuesOfBlock;
  std::vector<Column> columns;
  for (uint64_t i = 0; i < count && !cursor.failed; ++i) columns.push_back(TakeColumn(cursor, &values_left));
  if (cursor.failed || !cursor.rest.empty()) {
    return Error{ErrorCode::kCorrupt, "a block of columns is truncated", ""};
  }
  return columns;
}

}  // namespace fullbore::record
