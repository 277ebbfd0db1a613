// What the loader knows of one kind of transform. Each has a file of its own (resize.cc, color_jitter.cc, ...), which
// gives its struct of fullbore/loader/transforms.h its `kKind`; nothing else in the loader names it but Normalize, which
// belongs to the output (image_plan.h).
#pragma once

#include <variant>

#include "fullbore/loader.h"
#include "loader/core/member_reader.h"
#include "loader/core/transform/checker.h"
#include "loader/core/transform/draws.h"
#include "loader/core/transform/geometry.h"
#include "loader/core/transform/pixel_buffer.h"

namespace fullbore::loader {

struct TransformKind {
  const char* name = "";
  // Part of what a seed means: a number never changes, and no two are the same; 0: it draws nothing.
  int seed_number = 0;
  void (*read)(MemberReader& members, Transform& transform) = nullptr;  // its arguments
  Result<void> (*check)(const Checker& checker, const Transform& transform) = nullptr;
  // Where it is geometric: the size of the image after it, which is known before any pixel is, and its part of the chain.
  Size (*size_after)(const Transform& transform, Size in) = nullptr;
  void (*add)(GeometryChain& chain, const Transform& transform, const Draws& draws) = nullptr;
  // Where it changes pixels, and no size: the image that it made, which is one of the two. `other` may hold anything.
  PixelBuffer& (*change)(PixelBuffer& image, PixelBuffer& other, const Transform& transform,
                         const Draws& draws) = nullptr;

  bool changes_pixels() const { return change != nullptr; }
};

inline const TransformKind& KindOf(const Transform& transform) {
  return *std::visit([]<typename T>(const T&) { return &T::kKind; }, transform);
}

Size SizeAfter(const Transform& transform, Size in);

// ---- for the files of the kinds: the functions above, of the struct itself ----

template <typename T, auto kRead, auto kCheck>
constexpr TransformKind KindOfOutput(const char* name) {
  return {.name = name,
          .read = [](MemberReader& members, Transform& transform) { kRead(members, std::get<T>(transform)); },
          .check = [](const Checker& checker,
                      const Transform& transform) { return kCheck(checker, std::get<T>(transform)); }};
}

template <typename T, auto kRead, auto kCheck, auto kSizeAfter, auto kAdd>
constexpr TransformKind GeometricKind(const char* name, int seed_number) {
  TransformKind kind = KindOfOutput<T, kRead, kCheck>(name);
  kind.seed_number = seed_number;
  kind.size_after = [](const Transform& transform, Size in) {
    return kSizeAfter(std::get<T>(transform), in);
  };
  kind.add = [](GeometryChain& chain, const Transform& transform, const Draws& draws) {
    kAdd(chain, std::get<T>(transform), draws);
  };
  return kind;
}

template <typename T, auto kRead, auto kCheck, auto kChange>
constexpr TransformKind PixelKind(const char* name, int seed_number) {
  TransformKind kind = KindOfOutput<T, kRead, kCheck>(name);
  kind.seed_number = seed_number;
  kind.change = [](PixelBuffer& image, PixelBuffer& other, const Transform& transform,
                   const Draws& draws) -> PixelBuffer& {
    return kChange(image, other, std::get<T>(transform), draws);
  };
  return kind;
}

}  // namespace fullbore::loader
