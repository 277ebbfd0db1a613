// Where samples come from: any sample by its number, in any order, from many threads at once. Random access
// makes order, sharding and resuming exact; what a container lacks for it (offsets in a tar file) is indexed
// when the source is opened.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/loader/options.h"
#include "fullbore/loader/types.h"

namespace fullbore::loader {

enum class SourceFieldKind {
  kImage,    // an encoded image: JPEG, PNG, WebP; recognised by its bytes, not by its name
  kNpy,      // one array in NumPy's format, with its header
  kArray,    // plain numbers of SourceField::dtype and shape
  kInteger,  // FieldValue::integer: a label
  kText,     // UTF-8, including JSON
  kBytes,    // anything else
};

struct SourceField {
  std::string name;
  SourceFieldKind kind = SourceFieldKind::kBytes;
  DType dtype = DType::kUInt8;  // kArray only
  std::vector<int64_t> shape;   // kArray only
};

struct FieldValue {
  std::span<const uint8_t> bytes;  // into RawSample::storage
  int64_t integer = 0;             // kInteger only
};

// What one Read fills. Each thread keeps one and refills it, so that nothing is allocated in the steady
// state: storage only grows, and may be larger than the part that the fields use.
struct RawSample {
  std::vector<FieldValue> fields;  // in the order of Source::fields()
  std::vector<uint8_t> storage;
};

class Source {
 public:
  virtual ~Source() = default;

  virtual uint64_t size() const = 0;
  virtual const std::vector<SourceField>& fields() const = 0;
  virtual const std::vector<std::string>& class_names() const = 0;  // empty if labels have no names

  // How many samples lie together (in one shard each), in order; they sum to size(). One entry if nothing is
  // gained by reading neighbours one after the other.
  virtual std::vector<uint64_t> blocks() const { return {size()}; }

  // Fills `out` with sample `id`. Blocks; called from many threads. The error names the
  // file and the offset. kNotFound or kCorrupt mean that the file vanished, shrank or does
  // not parse. These and all other codes (kPermission, kIo: a bad sector) mark a bad sample,
  // except kUnavailable: the storage, not the sample, failed after all retries.
  virtual Result<void> Read(uint64_t id, RawSample& out) const = 0;

  // For messages: "train/cat/0012.jpg", "shard-003.tar at 51,200: 000123.jpg".
  virtual std::string NameOf(uint64_t id) const = 0;

  // Ends pending reads of remote storage early: they fail with kUnavailable.
  virtual void Cancel() {}

  // Messages since the last call: a cache that is off for lack of space, a stalled server.
  virtual std::vector<Message> TakeMessages() { return {}; }
};

Result<std::unique_ptr<Source>> OpenSource(const SourceOptions& options);

}  // namespace fullbore::loader
