// Takes the members of a JSON object one by one, and says which of them has an invalid value or was taken by nobody.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>

#include "fullbore/loader.h"

namespace fullbore::loader {

// Thrown by a reader: a member with an invalid value, or one too many. OptionsFromJson makes an error of it.
struct BadMember {
  std::string text, hint;
};

template <typename E>
struct Named {
  E value;
  const char* name;
};
inline constexpr Named<Interpolation> kInterpolations[] = {{Interpolation::kNearest, "nearest"},
                                                           {Interpolation::kBilinear, "bilinear"},
                                                           {Interpolation::kBicubic, "bicubic"}};

class MemberReader {
 public:
  // `where`: "transforms[2].", or empty where members have unique names.
  MemberReader(nlohmann::json object, std::string where)
      : object_(std::move(object)), where_(std::move(where)) {}

  // Each leaves what an absent member was.
  template <typename T>
  void Member(const char* name, T& value);
  template <typename E, size_t N>
  void Enum(const char* name, E& value, const Named<E> (&table)[N]);
  void Type(const char* name, DType& value);

  // After all members have been taken.
  void RejectRest() const;

 private:
  using Json = nlohmann::json;

  template <typename T>
  static bool HoldsIn(const Json& found);
  template <typename T>
  static const char* Wanted();
  template <typename F>
  void Take(const char* name, F use, const char* wanted = "another type is expected");

  Json object_;
  std::string where_;
};

// ---- implementation ----

template <typename T>
void MemberReader::Member(const char* name, T& value) {
  Take(
      name,
      [&](const Json& found) {
        // A fraction would be silently truncated, and a number out of range would wrap.
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          if (!HoldsIn<T>(found)) throw Json::type_error::create(302, "no such integer", &found);
        }
        value = found.get<T>();
      },
      Wanted<T>());
}

template <typename E, size_t N>
void MemberReader::Enum(const char* name, E& value, const Named<E> (&table)[N]) {
  Take(name, [&](const Json& found) {
    std::string names;
    for (const auto& entry : table) {
      if (found == entry.name) {
        value = entry.value;
        return;
      }
      names += (names.empty() ? "" : ", ") + std::string(entry.name);
    }
    throw BadMember{fmt::format("{}{} cannot be {}", where_, name, found.dump()), "one of: " + names};
  });
}

template <typename T>
bool MemberReader::HoldsIn(const Json& found) {
  if (found.is_number_unsigned()) return std::in_range<T>(found.get<uint64_t>());
  return found.is_number_integer() && std::in_range<T>(found.get<int64_t>());
}

template <typename T>
const char* MemberReader::Wanted() {
  if constexpr (std::is_same_v<T, bool>) return "true or false is expected";
  if constexpr (std::is_unsigned_v<T>) return "a whole number, 0 or more, is expected";
  if constexpr (std::is_integral_v<T>) return "a whole number is expected";
  if constexpr (std::is_floating_point_v<T>) return "a number is expected";
  return "another type is expected";
}

template <typename F>
void MemberReader::Take(const char* name, F use, const char* wanted) {
  const auto found = object_.find(name);
  if (found == object_.end()) return;
  try {
    use(*found);
  } catch (const Json::exception&) {
    throw BadMember{fmt::format("{}{} cannot be {}", where_, name, found->dump()), wanted};
  }
  object_.erase(found);
}

}  // namespace fullbore::loader
