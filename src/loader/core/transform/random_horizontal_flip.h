// RandomHorizontalFlip.
#pragma once

#include "fullbore/loader.h"
#include "loader/core/transform/draws.h"

namespace fullbore::loader {

bool DrawFlip(const RandomHorizontalFlip& flip, const Draws& draws);

}  // namespace fullbore::loader
