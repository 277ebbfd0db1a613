// Small questions about a trace that several others ask: what was launched when, on which device, what the host
// waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/device/trace.h"

namespace fullbore::timeline {

// The operations whose launch is known, in the order of their launches.
std::vector<uint32_t> OrderOfLaunches(const DeviceTrace& trace);

// By stream: which device it belongs to, numbered from 0 in the order of the streams.
std::vector<uint16_t> DevicesOfStreams(const DeviceTrace& trace);

// Whether calls of this kind launch operations.
bool RunsOperations(CallKind kind);

// Whether the call returns only when what was launched before it on some stream has ended.
bool WaitsForStream(const DeviceTrace& trace, const HostCall& call);

// Whether the call returns only when all that was launched before it has ended: a synchronisation with the device,
// or with its stream where there is only one.
bool WaitsForDevice(const DeviceTrace& trace, const HostCall& call);

}  // namespace fullbore::timeline
