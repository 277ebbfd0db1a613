// Checks a list of transforms before any image is read.
#pragma once

#include <string>
#include <vector>

#include "loader/core/transform/image_plan.h"

namespace fullbore::loader {

// kInvalidArgument with the transform, the argument, its value and what is allowed.
Result<void> CheckTransforms(const std::vector<Transform>& transforms, const ImagePlanOptions& options);

}  // namespace fullbore::loader
