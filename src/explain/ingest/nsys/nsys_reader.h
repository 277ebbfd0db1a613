// Nsight Systems exports (nsys export --type sqlite, schemas 2.x to 3.x) into one DeviceTrace per process
// that used a device. Which tables and columns exist depends on what was traced and on the version: what is
// missing is not read.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "timeline/device/trace.h"

namespace fullbore::ingest::nsys {

Result<std::vector<timeline::DeviceTrace>> ReadNsys(const std::string& path);

}  // namespace fullbore::ingest::nsys
