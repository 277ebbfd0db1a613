// The rest of the trace's operators as the roofline names them: WorkOf is in work.h.
#pragma once

#include <string_view>

#include "timeline/device/operators.h"

namespace fullbore::roofline {

// "matrix", "convolution", "attention", "normalisation", "elementwise", ...: as
// record::RooflineOperator::kind.
std::string_view Name(timeline::OperatorKind kind);

// The type of the elements in lists of tensors, which profilers do not record, from the name of a kernel that
// works on them: "FusedAdamMathFunctor<float, 4>", "CatArrayBatchedCopy<OpaqueType<2u>, ...".
timeline::ElementType TypeInKernelName(std::string_view name);

}  // namespace fullbore::roofline
