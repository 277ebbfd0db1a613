#include "loader/core/source/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/secrets.h"
#include "fullbore/loader/source.h"
#include "loader/core/randomness.h"
#include "loader/core/source/paths.h"
#include "loader/core/source/tar_writer.h"

namespace fullbore::loader {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kShardPrefix = "shard-";
constexpr char kClassesFile[] = "classes.json";

std::string ShardPath(const std::string& directory, uint64_t number) {
  return JoinPath(directory, fmt::format("{}{:06}.tar", kShardPrefix, number));
}

// What an earlier pack left: its shards, their indexes and class names, and partial files of a killed one.
bool IsOurs(const fs::path& file) {
  std::string name = file.filename();
  if (name.ends_with(".part")) name.resize(name.size() - 5);
  if (name == kClassesFile) return true;
  return name.starts_with(kShardPrefix) && (name.ends_with(".tar") || name.ends_with(".tar.idx"));
}

// Where shards are packed anew into their own directory, they would be removed before they are read.
bool HoldsInput(const std::string& output, const std::vector<std::string>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const std::string& input) {
    std::error_code none;
    const fs::path path(input);
    const bool inside =
        IsOurs(path) && fs::equivalent(path.parent_path().empty() ? "." : path.parent_path(), output, none);
    return inside || fs::equivalent(path, output, none);
  });
}

Result<void> PrepareOutput(const PackOptions& options) {
  if (HoldsInput(options.output, options.source.paths)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is an input of this command", options.output),
                 "choose another directory"};
  }
  std::error_code error;
  fs::create_directories(options.output, error);
  if (error)
    return ErrnoError(fmt::format("cannot create the directory '{}'", options.output), error.value());
  std::vector<fs::path> ours;
  bool empty = true;
  for (const auto& entry : fs::directory_iterator(options.output, error)) {
    empty = false;
    if (IsOurs(entry.path())) ours.push_back(entry.path());
  }
  if (error) return ErrnoError(fmt::format("cannot list '{}'", options.output), error.value());
  if (!empty && !options.force) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is not empty", options.output),
                 "choose another directory, or --force to replace the shards there"};
  }
  for (const fs::path& path : ours) {
    fs::remove(path, error);
    if (error) return ErrnoError(fmt::format("cannot remove '{}'", path.string()), error.value());
  }
  return {};
}

// Fisher-Yates. The modulo bias is less than 1 in 2^40 for any data set that exists.
std::vector<uint64_t> OrderOf(uint64_t samples, const std::optional<uint64_t>& seed) {
  std::vector<uint64_t> order(samples);
  std::iota(order.begin(), order.end(), uint64_t{0});
  if (!seed) return order;
  for (uint64_t i = samples; i > 1; --i) std::swap(order[i - 1], order[Mix(Mix(*seed) + i) % i]);
  return order;
}

// Without its dot. What is longer than the extension of any format is the rest of a name with dots; the
// format of an image is recognised by its bytes anyway.
std::string ImageExtension(std::string_view name) {
  constexpr size_t kLongest = 16;
  const std::string extension = ExtensionOf(name);
  return extension.size() < 2 || extension.size() > kLongest ? "jpg" : extension.substr(1);
}

class Packer {
 public:
  Packer(const PackOptions& options, const Source& source, const PackWatcher& watch)
      : options_(options), source_(source), watch_(watch) {
    result_.done.all_samples = source.size();
  }

  Result<PackResult> Run() {
    const std::vector<std::string>& names = source_.class_names();
    result_.class_names = names;
    if (!names.empty()) {
      const std::string json =
          nlohmann::json(names).dump(0, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
      auto written = WriteWholeFile(JoinPath(options_.output, kClassesFile), json);
      if (!written) return written.error();
    }
    for (const uint64_t id : OrderOf(source_.size(), options_.shuffle_seed)) {
      if (auto added = AddSample(id); !added) return Ended(added.error());
    }
    if (auto finished = FinishShard(); !finished) return Ended(finished.error());
    return std::move(result_);
  }

 private:
  Result<void> AddSample(uint64_t id) {
    if (watch_ && !watch_(result_.done)) return Error{ErrorCode::kUnavailable, "interrupted", ""};
    if (auto read = source_.Read(id, sample_); !read) return read;
    const std::string label = std::to_string(sample_.fields[1].integer);
    const std::string extension = ImageExtension(source_.NameOf(id));
    const std::array<TarWriter::Member, 2> members = {
        TarWriter::Member{extension, sample_.fields[0].bytes},
        TarWriter::Member{"cls", {reinterpret_cast<const uint8_t*>(label.data()), label.size()}}};
    const bool full = shard_ && shard_->bytes() + TarWriter::BytesOf(members) > options_.shard_bytes;
    if (full) {
      if (auto finished = FinishShard(); !finished) return finished;
    }
    if (!shard_) {
      auto created = TarWriter::Create(ShardPath(options_.output, result_.done.shards));
      if (!created) return created.error();
      shard_.emplace(std::move(*created));
    }
    if (auto added = shard_->Add(fmt::format("{:09}", id), members); !added) return added;
    ++result_.done.samples;
    result_.done.bytes += TarWriter::BytesOf(members);
    return {};
  }

  Result<void> FinishShard() {
    if (!shard_) return {};
    auto finished = shard_->Finish();
    shard_.reset();
    if (!finished) return finished;
    ++result_.done.shards;
    return {};
  }

  Error Ended(Error error) {
    shard_.reset();
    const uint64_t shards = result_.done.shards;
    if (shards == 0) {
      std::error_code ignored;  // it would describe nothing, and the next attempt finds the directory empty
      fs::remove(JoinPath(options_.output, kClassesFile), ignored);
      error.text += "; no shard was finished";
    } else {
      error.text +=
          fmt::format("; {} in '{}', the last is '{}'",
                      shards == 1 ? "one complete shard is" : fmt::format("{} complete shards are", shards),
                      options_.output, ShardPath(options_.output, shards - 1));
    }
    return error;
  }

  const PackOptions& options_;
  const Source& source_;
  const PackWatcher& watch_;
  RawSample sample_;
  std::optional<TarWriter> shard_;
  PackResult result_;
};

}  // namespace

Result<PackResult> Pack(const PackOptions& options, const PackWatcher& watch) {
  if (IsRemote(options.output)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is not a local directory", options.output),
                 "pack shards to a local disk and copy them from there, for example with `aws s3 sync`"};
  }
  constexpr uint64_t kMax =
      std::numeric_limits<int64_t>::max();  // a negative number wrapped to more than this
  if (options.shard_bytes == 0 || options.shard_bytes > kMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a shard cannot have {} bytes", options.shard_bytes), "--shard-size 256M"};
  }
  SourceOptions from = options.source;
  from.fields = {"image", "label"};
  auto source = OpenSource(from);
  if (!source) return MaskUrls(source.error());
  if (auto prepared = PrepareOutput(options); !prepared) return prepared.error();
  auto packed = Packer(options, **source, watch).Run();
  if (!packed) return MaskUrls(packed.error());
  packed->messages = (*source)->TakeMessages();
  for (Message& message : packed->messages) message.text = MaskUrls(message.text);
  return packed;
}

}  // namespace fullbore::loader
