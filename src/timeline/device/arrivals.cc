#include "timeline/device/arrivals.h"

#include <algorithm>
#include <map>

#include "timeline/device/tables.h"

namespace fullbore::timeline {

Role RoleOfKind(std::string_view kind) {
  if (kind.starts_with('i')) kind.remove_prefix(1);  // isend, irecv
  if (kind.starts_with("send_recv") || kind.starts_with("coalesced") || kind.starts_with("sendrecv"))
    return Role::kExchange;
  if (kind.starts_with("send")) return Role::kSend;
  return kind.starts_with("recv") || kind.starts_with("receive") ? Role::kReceive : Role::kCollective;
}

void Arrivals::Add(const Arrival& arrival, const Transfer& transfer) {
  Arrival& added = list.emplace_back(arrival);
  added.transfer = 0;
  if (RoleOf(added) == Role::kCollective) return;
  added.transfer = static_cast<uint32_t>(transfers.size());
  transfers.push_back(transfer);
}

Role Arrivals::RoleOf(const Arrival& arrival) const { return RoleOfKind(kinds[arrival.kind]); }

int Arrivals::SizeOf(size_t arrival) const {
  const uint32_t kind = list[arrival].kind;
  return kind < group_size.size() ? group_size[kind] : -1;
}

Arrivals ArrivalsOf(const DeviceTrace& trace, const ExposedTime& exposed) {
  Arrivals arrivals;
  arrivals.rank = trace.rank.value_or(-1);
  std::map<std::string, uint32_t> kinds;
  for (const DeviceOp& op : trace.ops) {
    if (op.lane != Lane::kComm) continue;
    const Collective about = op.detail == kNone ? Collective{} : trace.collectives[op.detail];
    const std::string kind = CollectiveKind(trace, op) + "/" + std::string(trace.names[about.group]);
    const auto [place, added] = kinds.try_emplace(kind, static_cast<uint32_t>(arrivals.kinds.size()));
    if (added) {
      arrivals.kinds.push_back(kind);
      arrivals.group_size.push_back(about.group_size);
    }
    arrivals.Add({op.begin_ns, op.end_ns, place->second},
                 {exposed.Within(op.begin_ns, op.end_ns), about.peer});
  }
  arrivals.list.shrink_to_fit();
  return arrivals;
}

void Append(const Arrivals& next, Arrivals* arrivals) {
  for (Arrival arrival : next.list) {
    const std::string& kind = next.kinds[arrival.kind];
    auto known = std::find(arrivals->kinds.begin(), arrivals->kinds.end(), kind);
    if (known == arrivals->kinds.end()) {
      arrivals->kinds.push_back(kind);
      arrivals->group_size.push_back(arrival.kind < next.group_size.size() ? next.group_size[arrival.kind]
                                                                           : -1);
      known = std::prev(arrivals->kinds.end());
    }
    arrival.kind = static_cast<uint32_t>(known - arrivals->kinds.begin());
    arrivals->Add(arrival, next.transfers[arrival.transfer]);
  }
}

void ShiftTimes(int64_t by_ns, Arrivals* arrivals) {
  for (Arrival& arrival : arrivals->list) {
    arrival.begin_ns += by_ns;
    arrival.end_ns += by_ns;
  }
}

}  // namespace fullbore::timeline
