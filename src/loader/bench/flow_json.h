// A flow as `--json` writes it: schema fullbore.loader_bench/1, described in docs/loader.md.
#pragma once

#include <nlohmann/json.hpp>

#include "loader/bench/flow.h"

namespace fullbore::loader::bench {

nlohmann::ordered_json ToJson(const Flow& flow, double wanted_samples_per_s);

}  // namespace fullbore::loader::bench
