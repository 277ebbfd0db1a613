// The tables of a rank: kernels, copies, synchronisations by place, collectives, launches.
#pragma once

#include "record/recording.h"
#include "timeline/device/host.h"
#include "timeline/device/shares.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

record::DeviceTables TablesOf(const DeviceTrace& trace, const HostActivity& host, const DeviceShares& shares);

// "all_reduce", from the name of the host's call, else from the kernel's
// ("ncclDevKernel_AllReduce_Sum_f32_RING_LL").
std::string CollectiveKind(const DeviceTrace& trace, const DeviceOp& op);

}  // namespace fullbore::timeline
