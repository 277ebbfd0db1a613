// Collectives, as the arguments of events tell them.
#pragma once

#include <cstdint>
#include <string_view>

namespace fullbore::ingest::kineto {

// What the arguments of a kernel, of "nccl:..." or of record_param_comms say about a collective.
struct CollectiveArgs {
  std::string_view name, type, dims, dim_type, group;
  int64_t in = -1, out = -1, group_size = -1, source = -1, destination = -1;

  void Take(std::string_view key, std::string_view value);
  // Of a send, where it goes to; of a receive, where it comes from; else -1.
  int32_t peer(std::string_view kind) const;
  int64_t bytes() const;  // -1 where they are not said
};

}  // namespace fullbore::ingest::kineto
