// Which shorter element types the device of a run takes, as advice in the words of its framework: tensor cores know
// bfloat16 and TF32 from compute capability 8.0 on, and float16 from 7.0 on.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/diagnose/program.h"
#include "explain/diagnose/view.h"
#include "record/step_graph.h"

namespace fullbore::diagnose {

// The device of the judged rank, as the driver calls it; empty where it was not recorded.
std::string NameOfDevice(const View& view);
// What it takes: by its name, else by the kernels that it ran.
record::MatrixUnits UnitsOf(const View& view);

struct PrecisionAdvice {
  std::string change;            // "torch.autocast(\"cuda\", torch.bfloat16)"
  std::vector<std::string> fix;  // each one thing to do, the first for `change`
};

// Nothing for a device that has no such units, or is not known to have them.
std::optional<PrecisionAdvice> PrecisionAdviceFor(const Program& program, std::string_view device,
                                                  record::MatrixUnits units);

}  // namespace fullbore::diagnose
