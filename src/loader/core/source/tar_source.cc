// Tar shards in WebDataset's layout. The index keeps for each sample its key and, for each field, its offset,
// its length and the CRC of its header: about 50 bytes for an image with a label.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "base/text.h"
#include "base/utf8.h"
#include "loader/core/source/field_kinds.h"
#include "loader/core/source/file_table.h"
#include "loader/core/source/paths.h"
#include "loader/core/source/sharded_source.h"
#include "loader/core/source/tar_format.h"
#include "loader/core/source/tar_index.h"

namespace fullbore::loader {

namespace {

constexpr uint64_t kAbsent = ~uint64_t{0};
constexpr uint32_t kTooLong = ~uint32_t{0};  // 4 GiB and more

struct Member {
  uint64_t header = kAbsent;
  uint32_t bytes = 0;
  uint32_t header_crc = 0;
};

struct Shard {
  StoredFile file;
  TextColumn keys;
  std::vector<Member> members;  // fields.size() per sample
  uint64_t samples() const { return keys.size(); }
};

class TarSource : public ShardedSource {
 public:
  using ShardedSource::ShardedSource;

  std::vector<Shard> shards;
  std::vector<WantedField> wanted;

  Result<void> Read(uint64_t id, RawSample& out) const override {
    const auto [file, index] = Find(id);
    const Shard& shard = shards[file];
    const std::span<const Member> members = MembersOf(shard, index);
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i].header == kAbsent) return Lacks(id, i);
      if (members[i].bytes == kTooLong) return TooLong(id, i);
    }
    out.fields.resize(members.size());
    if (auto read = ReadBlocks(shard, members, out); !read) return read.error();
    for (size_t i = 0; i < members.size(); ++i) {
      if (auto taken = TakeField(id, i, members[i], out.fields[i]); !taken) return taken.error();
    }
    return {};
  }

  std::string NameOf(uint64_t id) const override {
    const auto [file, index] = Find(id);
    const Shard& shard = shards[file];
    const std::span<const Member> members = MembersOf(shard, index);
    const std::string key(shard.keys[index]);
    if (members.empty() || members[0].header == kAbsent) return fmt::format("{}: {}", shard.file.path, key);
    return fmt::format("{} at {}: {}", shard.file.path,
                       FormatCount(static_cast<double>(members[0].header + kTarBlock)), key);
  }

 private:
  std::span<const Member> MembersOf(const Shard& shard, uint64_t index) const {
    return std::span(shard.members).subspan(index * wanted.size(), wanted.size());
  }

  // Fills the fields' bytes with header block and data. Uses one read if they are close together, as members
  // of a sample are, even with some unwanted ones in between.
  Result<void> ReadBlocks(const Shard& shard, std::span<const Member> members, RawSample& out) const {
    constexpr uint64_t kWorthSkipping = 64 << 10;
    uint64_t begin = kAbsent, end = 0, sum = 0;
    for (const Member& member : members) {
      const uint64_t length = kTarBlock + member.bytes;
      begin = std::min(begin, member.header);
      end = std::max(end, member.header + length);
      sum += length;
    }
    const bool together = end - begin <= sum + kWorthSkipping;
    const std::span<uint8_t> room = RoomIn(out.storage, together ? end - begin : sum);
    if (together) {
      if (auto read = store->Read(shard.file, begin, room); !read) return read;
    }
    size_t at = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      const size_t length = kTarBlock + members[i].bytes;
      const auto part = room.subspan(together ? members[i].header - begin : at, length);
      at += length;
      if (!together) {
        if (auto read = store->Read(shard.file, members[i].header, part); !read) return read;
      }
      out.fields[i].bytes = part;
    }
    return {};
  }

  Result<void> TakeField(uint64_t id, size_t field, const Member& member, FieldValue& value) const {
    value.integer = 0;
    if (Crc32c(value.bytes.first(kTarBlock)) != member.header_crc) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: the member there is not the one that was indexed", NameOf(id)),
                   "the shard was changed: open the source again, and remove the .idx file beside it"};
    }
    value.bytes = value.bytes.subspan(kTarBlock);
    if (source_fields[field].kind == SourceFieldKind::kText && !IsText(value.bytes)) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: '{}' is not valid UTF-8", NameOf(id), wanted[field].name), ""};
    }
    if (source_fields[field].kind != SourceFieldKind::kInteger) return {};
    const std::string_view text(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
    const auto number = ParseInt(Trim(text));
    if (!number) {
      constexpr size_t kShown = 20;
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}: '{}' is not an integer: '{}'", NameOf(id), wanted[field].name,
                               Utf8Front(text, kShown)),
                   ""};
    }
    value.integer = *number;
    value.bytes = {};
    return {};
  }

  Error Lacks(uint64_t id, size_t field) const {
    const auto& names = wanted[field].alternatives;
    std::string all = names.front();
    for (size_t i = 1; i < names.size(); ++i) all += "' or '" + names[i];
    return {ErrorCode::kCorrupt, fmt::format("{} has no '{}'", NameOf(id), all), ""};
  }

  Error TooLong(uint64_t id, size_t field) const {
    return {ErrorCode::kUnsupported,
            fmt::format("{}: '{}' is 4 GiB or larger", NameOf(id), wanted[field].name), ""};
  }
};

std::string IndexPathOf(const std::string& shard) { return shard + ".idx"; }

class TarOpener {
 public:
  explicit TarOpener(const Opening& opening) : opening_(opening), store_(*opening.store) {}

  OpenedSource Open() {
    if (auto fields = ChooseFields(); !fields) return fields.error();
    auto indexed =
        IndexShards(opening_, *source_, source_->shards, [this](Shard& shard) { return Index(shard); });
    if (!indexed) return indexed.error();
    if (source_->size() == 0) return Empty();
    if (auto named = ReadClassNames(); !named) return named.error();
    return std::unique_ptr<Source>(std::move(source_));
  }

 private:
  Error Empty() {
    return NoSamples(opening_, *source_, "samples", "the files of a sample share a name: 0001.jpg, 0001.cls");
  }

  // Visits a shard's samples by its index file if there is one that belongs to it, else by its headers.
  Result<void> VisitShard(const StoredFile& file, bool tell, const TarSampleVisitor& visit) {
    if (!IsRemote(file.path) || file.path.find('?') == std::string::npos) {
      std::vector<uint8_t> index;
      const auto bytes = store_.ReadWhole(IndexPathOf(file.path), index);
      if (!bytes && bytes.error().code == ErrorCode::kUnavailable) return bytes.error();
      if (bytes) {
        const auto whole = std::span<const uint8_t>(index).first(*bytes);
        const auto used = UseIndex(file, whole, visit);
        if (used) return {};
        if (tell)
          Warn(fmt::format("the index '{}' is not used: {}; the whole shard is read instead",
                           IndexPathOf(file.path), used.error().text));
      }
    }
    uint64_t samples = 0;
    auto scanned = ScanTar(store_, file, [&](const TarSample& sample) {
      ++samples;
      visit(sample);
    });
    if (!scanned) return scanned.error();
    if (!tell) return {};
    if (scanned->damage) {
      Warn(fmt::format("{}; what is used of it is its first {} sample{}", scanned->damage->text, samples,
                       samples == 1 ? "" : "s"));
    } else if (!scanned->has_end) {
      Warn(fmt::format("'{}' ends at byte {} without an end-of-archive marker: samples may be missing",
                       file.path, file.bytes));
    }
    return {};
  }

  // If the last member is not where the index says, the index belongs to another shard of the same size.
  Result<void> UseIndex(const StoredFile& file, std::span<const uint8_t> index,
                        const TarSampleVisitor& visit) {
    TarPart last;
    auto whole = ReadTarIndex(index, file.bytes, [&](const TarSample& sample) {
      if (!sample.parts.empty()) last = sample.parts.back();
    });
    if (!whole) return whole;
    std::array<uint8_t, kTarBlock> header;
    if (auto read = store_.Read(file, last.header, header); !read) return read;
    if (Crc32c(header) != last.header_crc)
      return Error{ErrorCode::kCorrupt, "the shard has changed since it was written", ""};
    return ReadTarIndex(index, file.bytes, visit);
  }

  void Warn(std::string text) { source_->messages.Add(Message::Severity::kWarning, std::move(text)); }

  // The requested fields; else those of the first sample, with its image under any image extension.
  Result<void> ChooseFields() {
    auto wanted = ParseWantedFields(opening_.options.fields);
    if (!wanted) return wanted.error();
    source_->wanted = std::move(*wanted);
    if (source_->wanted.empty()) {
      auto found = FieldsOfFirstSample();
      if (!found) return found.error();
      source_->wanted = std::move(*found);
    }
    for (WantedField& field : source_->wanted) {
      for (std::string& name : field.alternatives) name = LowerCase(name);
      source_->source_fields.push_back({field.name, KindOfExtension(field.alternatives[0]), {}, {}});
    }
    return {};
  }

  Result<std::vector<WantedField>> FieldsOfFirstSample() {
    std::vector<WantedField> fields;
    for (const std::string& path : opening_.paths) {
      auto file = store_.Stat(path);
      if (!file) return file.error();
      auto visited = VisitShard(*file, false, [&](const TarSample& sample) {
        if (!fields.empty()) return;
        for (const TarPart& part : sample.parts) {
          const bool image = KindOfExtension(part.extension) == SourceFieldKind::kImage;
          std::vector<std::string> names = {std::string(part.extension)};
          fields.push_back({names[0], image ? ImageAlternatives(part.extension) : names});
        }
      });
      if (!visited) return visited.error();
      if (!fields.empty()) break;
    }
    // Two images in one sample ("jpg" and "png") are two fields: neither may replace the other.
    const auto count = std::count_if(fields.begin(), fields.end(),
                                     [](const auto& field) { return field.alternatives.size() > 1; });
    if (count > 1) {
      for (WantedField& field : fields) field.alternatives.resize(1);
    }
    if (fields.empty()) return Empty();
    return fields;
  }

  Result<void> Index(Shard& shard) {
    auto visited = VisitShard(shard.file, true, [&](const TarSample& sample) {
      shard.keys.Add(sample.key);
      for (const WantedField& field : source_->wanted) shard.members.push_back(MemberOf(field, sample));
    });
    shard.keys.Compact();
    shard.members.shrink_to_fit();
    return visited;
  }

  static Member MemberOf(const WantedField& field, const TarSample& sample) {
    for (const std::string& name : field.alternatives) {
      for (const TarPart& part : sample.parts) {
        if (part.extension != name) continue;
        return {part.header, static_cast<uint32_t>(std::min<uint64_t>(part.bytes, kTooLong)),
                part.header_crc};
      }
    }
    return {};
  }

  // classes.json beside the shards: an array of names, the first for label 0. It may be missing.
  Result<void> ReadClassNames() {
    const bool labels = std::any_of(source_->source_fields.begin(), source_->source_fields.end(),
                                    [](const auto& field) { return field.name == "cls"; });
    if (!labels || opening_.paths[0].find('?') != std::string::npos) return {};
    const std::string path = JoinPath(DirectoryOf(opening_.paths[0]), "classes.json");
    std::vector<uint8_t> bytes;
    const auto size = store_.ReadWhole(path, bytes);
    if (!size) {
      if (size.error().code == ErrorCode::kUnavailable) return size.error();
      return {};
    }
    const auto json = nlohmann::json::parse(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(*size),
                                            nullptr, false);
    const bool names = json.is_array() && std::all_of(json.begin(), json.end(),
                                                      [](const auto& name) { return name.is_string(); });
    if (names) {
      source_->classes = json.get<std::vector<std::string>>();
    } else {
      Warn(fmt::format("'{}' is not used: it is not a JSON array of names", path));
    }
    return {};
  }

  const Opening& opening_;
  Store& store_;
  std::unique_ptr<TarSource> source_ = std::make_unique<TarSource>(opening_.store);
};

}  // namespace

OpenedSource OpenTar(const Opening& opening) { return TarOpener(opening).Open(); }

}  // namespace fullbore::loader
