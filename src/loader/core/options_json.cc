#include "loader/core/options_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace fullbore::loader {
namespace {

using nlohmann::json;

// --- Names of the enumerations -----------------------------------------------------------------------------

template <typename E>
struct Named {
  E value;
  const char* name;
};
constexpr Named<Layout> kLayouts[] = {{Layout::kNchw, "nchw"}, {Layout::kNhwc, "nhwc"}};
constexpr Named<Interpolation> kInterpolations[] = {{Interpolation::kNearest, "nearest"},
                                                    {Interpolation::kBilinear, "bilinear"},
                                                    {Interpolation::kBicubic, "bicubic"}};
constexpr Named<OnBadSample> kOnBadSample[] = {{OnBadSample::kSkip, "skip"}, {OnBadSample::kRaise, "raise"}};
constexpr Named<ImageMode> kImageModes[] = {{ImageMode::kRgb, "rgb"}, {ImageMode::kGray, "gray"}};

// Thrown inside this file only: a member with an invalid value.
struct BadMember {
  std::string text, hint;
};

template <typename E, size_t N>
E ValueIn(const Named<E> (&table)[N], const std::string& member, const json& value) {
  std::string names;
  for (const auto& entry : table) {
    if (value == entry.name) return entry.value;
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw BadMember{fmt::format("{} cannot be {}", member, value.dump()), "one of: " + names};
}

// --- Members -----------------------------------------------------------------------------------------------

struct Reader {
  json object;
  std::string where;  // "transforms[2].", or empty: options have unique names

  template <typename T>
  void Member(const char* name, T& value) {
    Take(
        name,
        [&](const json& found) {
          // A fraction would be silently truncated, and a number out of range would wrap.
          if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            if (!HoldsIn<T>(found)) throw json::type_error::create(302, "no such integer", &found);
          }
          value = found.get<T>();
        },
        Wanted<T>());
  }
  template <typename E, size_t N>
  void Enum(const char* name, E& value, const Named<E> (&table)[N]) {
    Take(name, [&](const json& found) { value = ValueIn(table, where + name, found); });
  }
  void Type(const char* name, DType& value) {
    Take(name, [&](const json& found) {
      const auto type = DTypeNamed(found.get<std::string>());
      if (!type)
        throw BadMember{fmt::format("{}{} cannot be {}", where, name, found.dump()),
                        "give one such as float32"};
      value = *type;
    });
  }

  // After all members have been taken.
  void RejectRest() const {
    if (object.empty()) return;
    throw BadMember{fmt::format("there is no option '{}{}'", where, object.begin().key()), ""};
  }

 private:
  template <typename T>
  static bool HoldsIn(const json& found) {
    if (found.is_number_unsigned()) return std::in_range<T>(found.get<uint64_t>());
    return found.is_number_integer() && std::in_range<T>(found.get<int64_t>());
  }
  template <typename T>
  static const char* Wanted() {
    if constexpr (std::is_same_v<T, bool>) return "true or false is expected";
    if constexpr (std::is_unsigned_v<T>) return "a whole number, 0 or more, is expected";
    if constexpr (std::is_integral_v<T>) return "a whole number is expected";
    if constexpr (std::is_floating_point_v<T>) return "a number is expected";
    return "another type is expected";
  }

  template <typename F>
  void Take(const char* name, F use, const char* wanted = "another type is expected") {
    const auto found = object.find(name);
    if (found == object.end()) return;
    try {
      use(*found);
    } catch (const json::exception&) {
      throw BadMember{fmt::format("{}{} cannot be {}", where, name, found->dump()), wanted};
    }
    object.erase(found);
  }
};

void Members(Reader& reader, SourceOptions& o) {
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

void Members(Reader& reader, LoaderOptions& o) {
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

void Members(Reader& reader, Resize& t) {
  reader.Member("height", t.height);
  reader.Member("width", t.width);
  reader.Enum("interpolation", t.interpolation, kInterpolations);
  reader.Member("max_size", t.max_size);
}
void Members(Reader& reader, CenterCrop& t) {
  reader.Member("height", t.height);
  reader.Member("width", t.width);
}
void Members(Reader& reader, RandomResizedCrop& t) {
  reader.Member("height", t.height);
  reader.Member("width", t.width);
  reader.Member("scale", t.scale);
  reader.Member("ratio", t.ratio);
  reader.Enum("interpolation", t.interpolation, kInterpolations);
}
void Members(Reader& reader, RandomHorizontalFlip& t) { reader.Member("p", t.p); }
void Members(Reader& reader, ColorJitter& t) {
  reader.Member("brightness", t.brightness);
  reader.Member("contrast", t.contrast);
  reader.Member("saturation", t.saturation);
  reader.Member("hue", t.hue);
}
void Members(Reader& reader, RandomRotation& t) {
  reader.Member("degrees", t.degrees);
  reader.Enum("interpolation", t.interpolation, kInterpolations);
  reader.Member("fill", t.fill);
}
void Members(Reader& reader, Normalize& t) {
  reader.Member("mean", t.mean);
  reader.Member("std", t.std);
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
  Reader reader{value, fmt::format("transforms[{}].", position)};
  std::string name;
  reader.Member("name", name);
  Transform transform = TransformNamed(name);
  std::visit([&](auto& t) { Members(reader, t); }, transform);
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
      Reader reader{*source, ""};
      Members(reader, options.source);
      reader.RejectRest();
      parsed.erase(source);
    }
    if (const auto transforms = parsed.find("transforms"); transforms != parsed.end()) {
      for (size_t i = 0; i < transforms->size(); ++i)
        options.transforms.push_back(TransformFrom((*transforms)[i], i));
      parsed.erase(transforms);
    }
    Reader reader{parsed, ""};
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
