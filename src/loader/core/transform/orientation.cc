#include "loader/core/transform/orientation.h"

#include <cstring>

namespace fullbore::loader {
namespace {

// The stored image, mirrored like this and then, if so, with its axes exchanged, is upright.
struct Turn {
  bool mirror_x = false, mirror_y = false, exchange = false;
};

Turn TurnOf(int orientation) {
  switch (orientation) {
    case 2:
      return {true, false, false};
    case 3:
      return {true, true, false};
    case 4:
      return {false, true, false};
    case 5:
      return {false, false, true};
    case 6:
      return {false, true, true};
    case 7:
      return {true, true, true};
    case 8:
      return {true, false, true};
    default:
      return {};
  }
}

Rect Exchanged(const Rect& rect) { return {rect.y, rect.x, rect.height, rect.width}; }

Rect Mirrored(Rect rect, Size whole, const Turn& turn) {
  if (turn.mirror_x) rect.x = whole.width - rect.x - rect.width;
  if (turn.mirror_y) rect.y = whole.height - rect.y - rect.height;
  return rect;
}

template <size_t kChannels>
void Copy(const ImageView& stored, const Turn& turn, size_t width, size_t height, uint8_t* to) {
  const auto stored_width = static_cast<size_t>(stored.region.width);
  const auto stored_height = static_cast<size_t>(stored.region.height);
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x, to += kChannels) {
      const size_t u = turn.exchange ? y : x, v = turn.exchange ? x : y;
      const size_t from_x = turn.mirror_x ? stored_width - 1 - u : u;
      const size_t from_y = turn.mirror_y ? stored_height - 1 - v : v;
      std::memcpy(to, stored.data + from_y * stored.stride + from_x * kChannels, kChannels);
    }
  }
}

}  // namespace

Size UprightSize(Size stored, int orientation) {
  return TurnOf(orientation).exchange ? Size{stored.height, stored.width} : stored;
}

Rect StoredRect(const Rect& upright, Size stored, int orientation) {
  const Turn turn = TurnOf(orientation);
  return Mirrored(turn.exchange ? Exchanged(upright) : upright, stored, turn);
}

Rect UprightRect(const Rect& stored_part, Size stored, int orientation) {
  const Turn turn = TurnOf(orientation);
  const Rect mirrored = Mirrored(stored_part, stored, turn);
  return turn.exchange ? Exchanged(mirrored) : mirrored;
}

ImageView TurnUpright(const ImageView& stored, Size whole, int orientation, std::vector<uint8_t>& storage) {
  ImageView upright = stored;
  upright.region = UprightRect(stored.region, whole, orientation);
  const auto width = static_cast<size_t>(upright.region.width);
  const auto height = static_cast<size_t>(upright.region.height);
  upright.stride = width * static_cast<size_t>(stored.channels);
  storage.resize(upright.stride * height);
  const auto copy = stored.channels == 1 ? Copy<1> : Copy<3>;
  copy(stored, TurnOf(orientation), width, height, storage.data());
  upright.data = storage.data();
  upright.bytes = storage.size();
  return upright;
}

}  // namespace fullbore::loader
