// One step of a rank as it was recorded, to be looked at: where the device's time went, and what each stream and
// thread did meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/share.h"

namespace fullbore::record {

struct ShareSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  Share share = Share::kCompute;
};

struct StepTimeline {
  struct Piece {
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    uint32_t name = 0;           // into `names`
    uint32_t count = 1;          // of operations or calls that are drawn as one
    uint8_t depth = 0;           // row of its track: inside, or beside, that many others
    std::optional<Share> share;  // what such work counts as; nothing for ordinary operators
  };
  struct Track {
    std::string name;  // "stream 0/7", "thread 4711 (main)"
    bool on_device = false;
    std::vector<Piece> pieces;  // of each depth in order; none overlap
  };

  int64_t step = 0;  // Step::index
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::vector<ShareSpan> shares;  // in order; empty where no device activity was recorded
  std::vector<Track> tracks;      // streams first
  std::vector<std::string> names;
};

}  // namespace fullbore::record
