// TFRecord files of tf.train.Example. A record is
//
//   u64 length, u32 masked CRC-32C of it, the Example, u32 masked CRC-32C of that; all little-endian
//
// so that opening reads a dozen bytes of each; the index takes 8 bytes per record. The first record decides
// the kind of each field: a bytes feature by its content (an image, an array, text, else bytes), one integer
// is a label, several are an array of int64, floats an array of float32. A record that deviates is a bad
// sample.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/crc32c.h"
#include "base/text.h"
#include "loader/core/source/example.h"
#include "loader/core/source/field_kinds.h"
#include "loader/core/source/part_reader.h"
#include "loader/core/source/sharded_source.h"

namespace fullbore::loader {

namespace {

constexpr size_t kLengthBytes = 8, kCrcBytes = 4;
constexpr size_t kHeaderBytes = kLengthBytes + kCrcBytes;
constexpr size_t kAroundBytes = kHeaderBytes + kCrcBytes;
constexpr size_t kAlignment = 8;

template <typename Number>
Number NumberAt(std::span<const uint8_t> bytes, size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

std::optional<uint64_t> LengthOf(std::span<const uint8_t> header) {
  const auto crc = NumberAt<uint32_t>(header, kLengthBytes);
  if (MaskCrc(Crc32c(header.first(kLengthBytes))) != crc) return std::nullopt;
  return NumberAt<uint64_t>(header, 0);
}

size_t BytesOfArray(const SourceField& field) {
  if (field.kind != SourceFieldKind::kArray) return 0;
  size_t bytes = BytesOf(field.dtype);
  for (const int64_t length : field.shape) bytes *= static_cast<size_t>(length);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct RecordFile {
  StoredFile file;
  std::vector<uint64_t> ends;  // of each record
  uint64_t samples() const { return ends.size(); }
  uint64_t BeginOf(uint64_t index) const { return index == 0 ? 0 : ends[index - 1]; }
};

class TfRecordSource : public ShardedSource {
 public:
  using ShardedSource::ShardedSource;

  std::vector<RecordFile> files;
  size_t array_bytes = 0;  // of all arrays of a sample

  Result<void> Read(uint64_t id, RawSample& out) const override {
    auto example = ReadRecord(id, out.storage, array_bytes);
    if (!example) return example.error();
    out.fields.assign(source_fields.size(), {});
    thread_local std::vector<Feature> features;
    features.assign(source_fields.size(), {});
    const bool parsed = ParseExample(*example, [&](std::string_view name, const Feature& feature) {
      for (size_t i = 0; i < source_fields.size(); ++i) {
        if (source_fields[i].name == name) features[i] = feature;
      }
    });
    if (!parsed) return Error{ErrorCode::kCorrupt, NameOf(id) + " is not a tf.train.Example", ""};
    // After the record, so that the arrays stay aligned.
    uint8_t* array = out.storage.data() + ArraysBegin(example->size());
    for (size_t i = 0; i < features.size(); ++i) {
      if (auto taken = TakeFeature(id, source_fields[i], features[i], array, out.fields[i]); !taken)
        return taken;
      array += BytesOfArray(source_fields[i]);
    }
    return {};
  }

  // The Example of a record, after checking its CRCs.
  Result<std::span<const uint8_t>> ReadRecord(uint64_t id, std::vector<uint8_t>& storage,
                                              size_t behind) const {
    const auto [number, index] = Find(id);
    const RecordFile& file = files[number];
    const uint64_t begin = file.BeginOf(index);
    const size_t length = file.ends[index] - begin;
    const auto room = RoomIn(storage, ArraysBegin(length - kAroundBytes) + behind).first(length);
    if (auto read = store->Read(file.file, begin, room); !read) return read.error();
    const std::span<const uint8_t> example = room.subspan(kHeaderBytes, length - kAroundBytes);
    if (LengthOf(room) != example.size()) {
      return Error{ErrorCode::kCorrupt, NameOf(id) + ": the record there is not the one that was indexed",
                   "the file was changed: open the source again"};
    }
    if (MaskCrc(Crc32c(example)) != NumberAt<uint32_t>(room, length - kCrcBytes))
      return Error{ErrorCode::kCorrupt, NameOf(id) + ": its checksum does not match: the record is damaged",
                   ""};
    return example;
  }

  std::string NameOf(uint64_t id) const override {
    const auto [number, index] = Find(id);
    const RecordFile& file = files[number];
    return fmt::format("{} at {}: record {}", file.file.path,
                       FormatCount(static_cast<double>(file.BeginOf(index))), index);
  }

 private:
  static size_t ArraysBegin(size_t example_bytes) {
    return (example_bytes + kAroundBytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  Result<void> TakeFeature(uint64_t id, const SourceField& field, const Feature& feature, uint8_t* array,
                           FieldValue& value) const {
    const bool is_array = field.kind == SourceFieldKind::kArray;
    const uint64_t count = is_array && !field.shape.empty() ? static_cast<uint64_t>(field.shape[0]) : 1;
    const bool integers =
        field.kind == SourceFieldKind::kInteger || (is_array && field.dtype == DType::kInt64);
    const FeatureKind kind = integers   ? FeatureKind::kIntegers
                             : is_array ? FeatureKind::kFloats
                                        : FeatureKind::kBytes;
    if (feature.kind != kind || feature.count != count) return Deviates(id, field, feature, count);
    if (field.kind == SourceFieldKind::kInteger) {
      value.integer = FirstInteger(feature);
    } else if (is_array) {
      if (integers) {
        CopyIntegers(feature, array);
      } else {
        CopyFloats(feature, array);
      }
      value.bytes = {array, count * BytesOf(field.dtype)};
    } else {
      value.bytes = feature.bytes;
      if (field.kind == SourceFieldKind::kText && !IsText(value.bytes))
        return Error{ErrorCode::kCorrupt, fmt::format("{}: '{}' is not valid UTF-8", NameOf(id), field.name),
                     ""};
    }
    return {};
  }

  Error Deviates(uint64_t id, const SourceField& field, const Feature& feature, uint64_t count) const {
    constexpr const char* kNames[] = {"nothing", "bytes", "floats", "integers"};
    return {ErrorCode::kCorrupt,
            fmt::format("{}: '{}' holds {} ({} values), but the first record has {} value{} of its kind",
                        NameOf(id), field.name, kNames[static_cast<int>(feature.kind)], feature.count, count,
                        count == 1 ? "" : "s"),
            ""};
  }
};

class TfRecordOpener {
 public:
  explicit TfRecordOpener(const Opening& opening) : opening_(opening), store_(*opening.store) {}

  OpenedSource Open() {
    auto indexed =
        IndexShards(opening_, *source_, source_->files, [this](RecordFile& file) { return Index(file); });
    if (!indexed) return indexed.error();
    if (source_->size() == 0) return NoSamples(opening_, *source_, "records", "");
    if (auto declared = DeclareFields(); !declared) return declared.error();
    return std::unique_ptr<Source>(std::move(source_));
  }

 private:
  Result<void> Index(RecordFile& file) {
    PartReader reader(store_, file.file);
    uint64_t at = 0;
    while (at < file.file.bytes) {
      auto header = reader.At(at, kHeaderBytes);
      if (!header && header.error().code != ErrorCode::kCorrupt) return header.error();
      if (!header) return Cut(file, at);
      const auto length = LengthOf(*header);
      if (!length) return Damaged(file, at, *header);
      const uint64_t left = file.file.bytes - at;
      if (left < kAroundBytes || *length > left - kAroundBytes) return Cut(file, at);
      at += kAroundBytes + *length;
      file.ends.push_back(at);
    }
    file.ends.shrink_to_fit();
    return {};
  }

  // Not an error: the records before are complete.
  Result<void> Cut(const RecordFile& file, uint64_t at) {
    Warn(file, fmt::format("'{}' is truncated at byte {}, within the record that begins at byte {}",
                           file.file.path, file.file.bytes, at));
    return {};
  }

  Result<void> Damaged(const RecordFile& file, uint64_t at, std::span<const uint8_t> header) {
    const bool gzip = header[0] == 0x1f && header[1] == 0x8b;
    const bool zlib = header[0] == 0x78 && (header[0] * 256 + header[1]) % 31 == 0;
    if (at == 0 && (gzip || zlib)) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("'{}' is compressed as a whole: no record can be read without those before it",
                               file.file.path),
                   "write it without compression; images are compressed already"};
    }
    Warn(file, fmt::format("'{}' is damaged at byte {}: the length of a record has a wrong checksum, so the "
                           "records after it cannot be found",
                           file.file.path, at));
    return {};
  }

  void Warn(const RecordFile& file, std::string text) {
    source_->messages.Add(Message::Severity::kWarning,
                          fmt::format("{}; records used from it: {}", text, file.samples()));
  }

  struct Named {
    std::string name;
    Feature feature;
  };

  // Sorted by name, because the order on the wire changes from record to record.
  Result<void> DeclareFields() {
    std::vector<uint8_t> storage;
    std::vector<Named> features;
    auto first = FirstExample(storage, features);
    if (!first) return first;
    std::stable_sort(features.begin(), features.end(),
                     [](const Named& a, const Named& b) { return a.name < b.name; });
    const auto& wanted = opening_.options.fields;
    if (wanted.empty()) {
      for (const Named& named : features) {
        if (auto field = FieldOf(named)) {
          source_->source_fields.push_back(std::move(*field));
        } else {
          source_->messages.Add(Message::Severity::kInfo, LeftOut(named));
        }
      }
      if (source_->source_fields.empty()) return NoFeature("", features);
    }
    for (const std::string& name : wanted) {
      const auto named = std::find_if(features.begin(), features.end(),
                                      [&](const Named& candidate) { return candidate.name == name; });
      if (named == features.end()) return NoFeature(name, features);
      auto field = FieldOf(*named);
      if (!field) return Error{ErrorCode::kUnsupported, LeftOut(*named), ""};
      source_->source_fields.push_back(std::move(*field));
    }
    for (const SourceField& field : source_->source_fields) source_->array_bytes += BytesOfArray(field);
    return {};
  }

  // From the first record that is complete.
  Result<void> FirstExample(std::vector<uint8_t>& storage, std::vector<Named>& features) {
    std::optional<Error> damage;
    constexpr uint64_t kTries = 100;
    for (uint64_t id = 0; id < std::min(source_->size(), kTries); ++id) {
      features.clear();
      auto example = source_->ReadRecord(id, storage, 0);
      if (!example && example.error().code == ErrorCode::kUnavailable) return example.error();
      const bool parsed =
          example && ParseExample(*example, [&](std::string_view name, const Feature& feature) {
            std::erase_if(features, [&](const Named& named) { return named.name == name; });
            features.push_back({std::string(name), feature});
          });
      if (parsed) return {};
      if (!damage)
        damage = example ? Error{ErrorCode::kCorrupt, source_->NameOf(id) + " is not a tf.train.Example", ""}
                         : example.error();
    }
    return *damage;
  }

  static std::optional<SourceField> FieldOf(const Named& named) {
    const Feature& feature = named.feature;
    const std::vector<int64_t> shape = feature.count == 1
                                           ? std::vector<int64_t>()
                                           : std::vector<int64_t>{static_cast<int64_t>(feature.count)};
    if (feature.count == 0) return std::nullopt;
    if (feature.kind == FeatureKind::kFloats)
      return SourceField{named.name, SourceFieldKind::kArray, DType::kFloat32, shape};
    if (feature.kind == FeatureKind::kIntegers) {
      if (feature.count == 1) return SourceField{named.name, SourceFieldKind::kInteger, {}, {}};
      return SourceField{named.name, SourceFieldKind::kArray, DType::kInt64, shape};
    }
    if (feature.count != 1) return std::nullopt;
    return SourceField{named.name, KindOfContent(feature.bytes), {}, {}};
  }

  static std::string LeftOut(const Named& named) {
    return fmt::format("the feature '{}' is left out: it has {} values in the first record", named.name,
                       named.feature.count == 0 ? "no" : "several");
  }

  Error NoFeature(const std::string& name, const std::vector<Named>& features) const {
    std::string there;
    for (const Named& named : features) there += (there.empty() ? "" : ", ") + named.name;
    return {ErrorCode::kInvalidArgument,
            fmt::format("'{}' has no feature '{}' (it has: {})", opening_.paths[0], name,
                        there.empty() ? "none" : there),
            ""};
  }

  const Opening& opening_;
  Store& store_;
  std::unique_ptr<TfRecordSource> source_ = std::make_unique<TfRecordSource>(opening_.store);
};

}  // namespace

OpenedSource OpenTfRecord(const Opening& opening) { return TfRecordOpener(opening).Open(); }

}  // namespace fullbore::loader
