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

template <typename E, size_t N>
const char* NameIn(const Named<E> (&table)[N], E value) {
  for (const auto& entry : table) {
    if (entry.value == value) return entry.name;
  }
  return "";
}

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

// --- Members: one function lists them all, once, for both directions

// Visits write to or read from one JSON object.
struct Writer {
  json object = json::object();

  template <typename T>
  void Member(const char* name, T& value) {
    object[name] = value;
  }
  template <typename E, size_t N>
  void Enum(const char* name, E& value, const Named<E> (&table)[N]) {
    object[name] = NameIn(table, value);
  }
  void Type(const char* name, DType& value) { object[name] = NameOf(value); }
};

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

template <typename V>
void Members(V& v, SourceOptions& o) {
  v.Member("paths", o.paths);
  v.Member("kind", o.kind);
  v.Member("fields", o.fields);
  v.Member("cache_directory", o.cache_directory);
  v.Member("cache_bytes", o.cache_bytes);
  v.Member("memory_cache_bytes", o.memory_cache_bytes);
  v.Member("s3_endpoint", o.s3_endpoint);
  v.Member("timeout_s", o.timeout_s);
  v.Member("retries", o.retries);
}

template <typename V>
void Members(V& v, LoaderOptions& o) {
  v.Member("batch_size", o.batch_size);
  v.Member("shuffle", o.shuffle);
  v.Member("shuffle_shards", o.shuffle_shards);
  v.Member("seed", o.seed);
  v.Member("rank", o.rank);
  v.Member("world_size", o.world_size);
  v.Member("drop_last", o.drop_last);
  v.Member("pad_last", o.pad_last);
  v.Enum("on_bad_sample", o.on_bad_sample, kOnBadSample);
  v.Member("bad_sample_budget", o.bad_sample_budget);
  v.Type("dtype", o.dtype);
  v.Enum("layout", o.layout, kLayouts);
  v.Enum("image_mode", o.image_mode, kImageModes);
  v.Member("apply_exif_orientation", o.apply_exif_orientation);
  v.Member("fast_dct", o.fast_dct);
  v.Member("scaled_decode", o.scaled_decode);
  v.Member("max_image_pixels", o.max_image_pixels);
  v.Member("threads", o.threads);
  v.Member("max_read_threads", o.max_read_threads);
  v.Member("nice", o.nice);
  v.Member("prefetch_batches", o.prefetch_batches);
}

template <typename V>
void Members(V& v, Resize& t) {
  v.Member("height", t.height);
  v.Member("width", t.width);
  v.Enum("interpolation", t.interpolation, kInterpolations);
  v.Member("max_size", t.max_size);
}
template <typename V>
void Members(V& v, CenterCrop& t) {
  v.Member("height", t.height);
  v.Member("width", t.width);
}
template <typename V>
void Members(V& v, RandomResizedCrop& t) {
  v.Member("height", t.height);
  v.Member("width", t.width);
  v.Member("scale", t.scale);
  v.Member("ratio", t.ratio);
  v.Enum("interpolation", t.interpolation, kInterpolations);
}
template <typename V>
void Members(V& v, RandomHorizontalFlip& t) {
  v.Member("p", t.p);
}
template <typename V>
void Members(V& v, ColorJitter& t) {
  v.Member("brightness", t.brightness);
  v.Member("contrast", t.contrast);
  v.Member("saturation", t.saturation);
  v.Member("hue", t.hue);
}
template <typename V>
void Members(V& v, RandomRotation& t) {
  v.Member("degrees", t.degrees);
  v.Enum("interpolation", t.interpolation, kInterpolations);
  v.Member("fill", t.fill);
}
template <typename V>
void Members(V& v, Normalize& t) {
  v.Member("mean", t.mean);
  v.Member("std", t.std);
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

std::string OptionsToJson(const LoaderOptions& options) {
  LoaderOptions copy = options;
  Writer all, source;
  Members(all, copy);
  Members(source, copy.source);
  all.object["source"] = source.object;
  json& transforms = all.object["transforms"] = json::array();
  for (Transform& transform : copy.transforms) {
    Writer writer;
    std::visit([&](auto& t) { Members(writer, t); }, transform);
    writer.object["name"] = NameOf(transform);
    transforms.push_back(writer.object);
  }
  return all.object.dump();
}

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
