#include "loader/core/options/options_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "loader/core/member_reader.h"
#include "loader/core/transform/kind.h"

namespace fullbore::loader {
namespace {

using nlohmann::json;

constexpr Named<Layout> kLayouts[] = {{Layout::kNchw, "nchw"}, {Layout::kNhwc, "nhwc"}};
constexpr Named<OnBadSample> kOnBadSample[] = {{OnBadSample::kSkip, "skip"}, {OnBadSample::kRaise, "raise"}};
constexpr Named<ImageMode> kImageModes[] = {{ImageMode::kRgb, "rgb"}, {ImageMode::kGray, "gray"}};

void Members(MemberReader& reader, SourceOptions& o) {
  reader.Member("paths", o.paths);
  reader.Member("kind", o.kind);
  reader.Member("fields", o.fields);
  reader.Member("cache_directory", o.cache_directory);
  reader.Member("cache_bytes", o.cache_bytes);
  reader.Member("memory_cache_bytes", o.memory_cache_bytes);
  reader.Member("s3_endpoint", o.s3_endpoint);
  reader.Member("timeout_s", o.timeout_s);
  reader.Member("retries", o.retries);
}

void Members(MemberReader& reader, LoaderOptions& o) {
  reader.Member("batch_size", o.batch_size);
  reader.Member("shuffle", o.shuffle);
  reader.Member("shuffle_shards", o.shuffle_shards);
  reader.Member("seed", o.seed);
  reader.Member("rank", o.rank);
  reader.Member("world_size", o.world_size);
  reader.Member("drop_last", o.drop_last);
  reader.Member("pad_last", o.pad_last);
  reader.Enum("on_bad_sample", o.on_bad_sample, kOnBadSample);
  reader.Member("bad_sample_budget", o.bad_sample_budget);
  reader.Type("dtype", o.dtype);
  reader.Enum("layout", o.layout, kLayouts);
  reader.Enum("image_mode", o.image_mode, kImageModes);
  reader.Member("apply_exif_orientation", o.apply_exif_orientation);
  reader.Member("fast_dct", o.fast_dct);
  reader.Member("scaled_decode", o.scaled_decode);
  reader.Member("max_image_pixels", o.max_image_pixels);
  reader.Member("threads", o.threads);
  reader.Member("max_read_threads", o.max_read_threads);
  reader.Member("nice", o.nice);
  reader.Member("prefetch_batches", o.prefetch_batches);
}

// One of each kind, in the order of the variant.
template <size_t... I>
std::vector<Transform> EachTransform(std::index_sequence<I...>) {
  return {Transform(std::in_place_index<I>)...};
}

Transform TransformNamed(const std::string& name) {
  std::string names;
  for (const Transform& transform :
       EachTransform(std::make_index_sequence<std::variant_size_v<Transform>>())) {
    if (name == NameOf(transform)) return transform;
    names += (names.empty() ? "" : ", ") + std::string(NameOf(transform));
  }
  throw BadMember{fmt::format("there is no transform '{}'", name), "one of: " + names};
}

Transform TransformFrom(const json& value, size_t position) {
  MemberReader reader{value, fmt::format("transforms[{}].", position)};
  std::string name;
  reader.Member("name", name);
  Transform transform = TransformNamed(name);
  KindOf(transform).read(reader, transform);
  reader.RejectRest();
  return transform;
}

}  // namespace

Result<LoaderOptions> OptionsFromJson(std::string_view text) {
  json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) {
    return Error{ErrorCode::kInvalidArgument, "the loader's options are not a JSON object", ""};
  }
  try {
    LoaderOptions options;
    if (const auto source = parsed.find("source"); source != parsed.end()) {
      MemberReader reader{*source, ""};
      Members(reader, options.source);
      reader.RejectRest();
      parsed.erase(source);
    }
    if (const auto transforms = parsed.find("transforms"); transforms != parsed.end()) {
      for (size_t i = 0; i < transforms->size(); ++i)
        options.transforms.push_back(TransformFrom((*transforms)[i], i));
      parsed.erase(transforms);
    }
    MemberReader reader{parsed, ""};
    Members(reader, options);
    reader.RejectRest();
    return options;
  } catch (const BadMember& bad) {
    return Error{ErrorCode::kInvalidArgument, bad.text, bad.hint};
  } catch (const json::exception& error) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the loader's options cannot be parsed: {}", error.what()), ""};
  }
}

}  // namespace fullbore::loader
