#include "explain/memory/places.h"

#include <fmt/format.h>

#include <string_view>

namespace fullbore::memory {

namespace {

bool IsPython(const Frame& frame) {
  return std::string_view(frame.file).ends_with(".py") || frame.file == "<stdin>";
}

bool IsInstalled(const Frame& frame) {
  for (const char* part :
       {"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen ", "/fullbore/hook/"}) {
    if (frame.file.find(part) != std::string::npos) return true;
  }
  return false;
}

std::string TextOf(const Frame& frame) {
  const size_t slash = frame.file.rfind('/');
  const std::string_view name = slash == std::string::npos ? std::string_view(frame.file)
                                                           : std::string_view(frame.file).substr(slash + 1);
  return fmt::format("{}:{} in {}", name, frame.line, frame.function);
}

}  // namespace

std::string PlaceOf(const MemorySnapshot& snapshot, StackIndex stack) {
  const Frame* innermost = nullptr;
  for (const uint32_t index : snapshot.stacks[stack]) {
    const Frame& frame = snapshot.frames[index];
    if (!IsPython(frame)) continue;
    if (!IsInstalled(frame)) return TextOf(frame);
    if (innermost == nullptr) innermost = &frame;
  }
  return innermost == nullptr ? "" : TextOf(*innermost);
}

}  // namespace fullbore::memory
