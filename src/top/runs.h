// The runs that are being recorded, as `top` shows them.
#pragma once

#include <string>
#include <vector>

#include "top/state.h"

namespace fullbore::watch {
class LiveRun;
class RunsFolder;
}  // namespace fullbore::watch

namespace fullbore::top {

std::vector<Run> RunsOf(const watch::RunsFolder& folder);
Run RunOf(const std::string& name, const watch::LiveRun& live);

}  // namespace fullbore::top
