#include "report/page_timeline.h"

#include <algorithm>

#include "base/utf8.h"

namespace fullbore::report {
namespace {

using Json = nlohmann::ordered_json;

// Of operators and kernels: their template arguments can be thousands of characters.
constexpr size_t kShownName = 160;
// Rows of a page: of more ranks than this, only where the time goes is shown.
constexpr size_t kRanksInFull = 8;

Json TracksData(const record::StepTimeline& line, int64_t origin_ns) {
  Json tracks = Json::array();
  for (const record::StepTimeline::Track& track : line.tracks) {
    Json t = Json::array(), d = Json::array(), name = Json::array(), share = Json::array(),
         row = Json::array();
    Json counts = Json::object();  // few pieces are more than one
    for (const record::StepTimeline::Piece& piece : track.pieces) {
      if (piece.count > 1) counts[std::to_string(t.size())] = piece.count;
      t.push_back(piece.begin_ns - origin_ns);
      d.push_back(piece.end_ns - piece.begin_ns);
      name.push_back(piece.name);
      share.push_back(piece.share ? static_cast<int>(*piece.share) : -1);
      row.push_back(piece.depth);
    }
    tracks.push_back({{"label", track.name},
                      {"device", track.on_device},
                      {"t", std::move(t)},
                      {"d", std::move(d)},
                      {"name", std::move(name)},
                      {"share", std::move(share)},
                      {"row", std::move(row)},
                      {"counts", std::move(counts)}});
  }
  return tracks;
}

}  // namespace

Json TimelineData(const record::Stage& stage) {
  int64_t origin_ns = INT64_MAX, end_ns = INT64_MIN;
  for (const record::RankInfo& rank : stage.ranks) {
    if (!rank.timeline) continue;
    origin_ns = std::min(origin_ns, rank.timeline->begin_ns);
    end_ns = std::max(end_ns, rank.timeline->end_ns);
  }
  if (origin_ns >= end_ns) return nullptr;
  Json ranks = Json::array();
  size_t in_full = 0;
  for (const record::RankInfo& rank : stage.ranks) {
    if (!rank.timeline) continue;
    const record::StepTimeline& line = *rank.timeline;
    Json t = Json::array(), d = Json::array(), share = Json::array();
    for (const record::ShareSpan& span : line.shares) {
      t.push_back(span.begin_ns - origin_ns);
      d.push_back(span.end_ns - span.begin_ns);
      share.push_back(static_cast<int>(span.share));
    }
    Json data = {{"rank", rank.rank},
                 {"step", line.step},
                 {"shares", {{"t", std::move(t)}, {"d", std::move(d)}, {"share", std::move(share)}}}};
    if (++in_full <= kRanksInFull) {
      data["tracks"] = TracksData(line, origin_ns);
      data["names"] = Json::array();
      for (const std::string& name : line.names) data["names"].push_back(Utf8Front(name, kShownName));
    }
    ranks.push_back(std::move(data));
  }
  Json shares = Json::array();
  for (size_t i = 0; i < record::kShareCount; ++i) shares.push_back(Name(static_cast<record::Share>(i)));
  return {{"end_ns", end_ns - origin_ns}, {"shares", std::move(shares)}, {"ranks", std::move(ranks)}};
}

}  // namespace fullbore::report
