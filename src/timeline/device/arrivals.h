// When a rank comes to what it does with others, and when that ends: its collectives, sends and receives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/device/shares.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

enum class Role : uint8_t {
  kCollective,  // meets all ranks of its group
  kSend,
  kReceive,
  kExchange,  // one or the other, or both in one kernel
};

struct Arrival {  // one collective, send or receive on one rank
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint32_t kind = 0;      // into Arrivals::kinds
  uint32_t transfer = 0;  // into Arrivals::transfers; 0 of a collective
};

// What is known of a send or receive besides. Most ranks have none, and of thousands of collectives on hundreds of
// ranks each byte counts.
struct Transfer {
  int64_t exposed_ns = 0;  // no computation ran beside it
  int32_t peer = -1;       // the other rank, -1 where not recorded
};

struct Arrivals {
  std::vector<std::string> kinds;          // "all_reduce/default_pg"
  std::vector<Arrival> list;               // by begin
  std::vector<Transfer> transfers = {{}};  // the first one stands for none
  std::vector<int> group_size;             // by kind, -1 where not recorded
  int rank = -1;                           // as peers number it

  void Add(const Arrival& arrival, const Transfer& transfer);  // which is kept where it is not a collective

  Role RoleOf(const Arrival& arrival) const;
  int SizeOf(size_t arrival) const;  // of its group, -1 where not recorded
};

Arrivals ArrivalsOf(const DeviceTrace& trace, const ExposedTime& exposed = {});
// Of a later recording of the same process.
void Append(const Arrivals& next, Arrivals* arrivals);
void ShiftTimes(int64_t by_ns, Arrivals* arrivals);

Role RoleOfKind(std::string_view kind);
inline std::string_view GroupOf(std::string_view kind) { return kind.substr(kind.find('/') + 1); }

}  // namespace fullbore::timeline
