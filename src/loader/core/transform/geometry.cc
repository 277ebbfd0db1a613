#include "loader/core/transform/geometry.h"

namespace fullbore::loader {
namespace {

bool Inside(const Rect& rect, Size size) {
  return rect.x >= 0 && rect.y >= 0 && rect.x + rect.width <= size.width &&
         rect.y + rect.height <= size.height;
}

bool ShowsAll(const Pass& pass) {
  const Rect& window = pass.window;
  return window.x == 0 && window.y == 0 && Size{window.width, window.height} == pass.size;
}

// Cuts `part`, given in coordinates of `whole` as it looks once mirrored or not, out of `whole`.
Rect Within(const Rect& whole, const Rect& part, bool mirrored) {
  const int x = mirrored ? whole.width - part.x - part.width : part.x;
  return {whole.x + x, whole.y + part.y, part.width, part.height};
}

}  // namespace

bool Pass::changes_nothing() const {
  return size == input && Size{box.width, box.height} == input && ShowsAll(*this) && !mirror_box &&
         !mirror_window;
}

void GeometryChain::StartPass(Size input) {
  Pass pass;
  pass.input = pass.size = input;
  pass.box = pass.window = {0, 0, input.width, input.height};
  passes_.push_back(pass);
  sized_ = false;
}

void GeometryChain::Start(Size input) {
  passes_.clear();
  StartPass(input);
}

Size GeometryChain::size() const { return {passes_.back().window.width, passes_.back().window.height}; }

void GeometryChain::Crop(const Rect& rect) {
  const Size now = size();
  const bool pads = !Inside(rect, now);
  // What was cropped away before must not come back: that area is black now.
  if (pads && !ShowsAll(passes_.back())) StartPass(now);
  Pass& pass = passes_.back();
  if (sized_ || pads) {
    pass.window = Within(pass.window, rect, pass.mirror_window);
    sized_ = true;
    return;
  }
  pass.box = Within(pass.box, rect, pass.mirror_box);
  pass.size = {rect.width, rect.height};
  pass.window = {0, 0, rect.width, rect.height};
}

void GeometryChain::ResizeTo(Size size, Interpolation interpolation) {
  if (size == this->size()) return;
  if (sized_) StartPass(this->size());
  Pass& pass = passes_.back();
  pass.size = size;
  pass.window = {0, 0, size.width, size.height};
  pass.interpolation = interpolation;
  sized_ = true;
}

void GeometryChain::Flip() {
  Pass& pass = passes_.back();
  bool& mirror = sized_ ? pass.mirror_window : pass.mirror_box;
  mirror = !mirror;
}

}  // namespace fullbore::loader
