#include "loader/core/transform/kind.h"

namespace fullbore::loader {

const char* NameOf(const Transform& transform) { return KindOf(transform).name; }

Size SizeAfter(const Transform& transform, Size in) {
  const TransformKind& kind = KindOf(transform);
  return kind.size_after == nullptr ? in : kind.size_after(transform, in);
}

}  // namespace fullbore::loader
