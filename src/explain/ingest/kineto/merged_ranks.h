// The events of one file, by rank: scripts that merge the traces of several ranks put a label in front of each
// process and thread (rank_label.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "explain/ingest/kineto/census.h"
#include "explain/ingest/kineto/event.h"
#include "explain/ingest/kineto/event_sorter.h"
#include "timeline/device/trace.h"

namespace fullbore::ingest::kineto {

class MergedRanks {
 public:
  // What the events mean goes into `trace`, and of other ranks into its `others`.
  MergedRanks(timeline::DeviceTrace* trace, bool stacks)
      : trace_(trace), stacks_(stacks), unlabelled_(trace, stacks) {}

  void Take(const RawEvent& event);
  void Finish();  // after the last event; finishes the trace

  const Census& census() const { return unlabelled_.census(); }

 private:
  struct Rank {
    explicit Rank(bool stacks) : sorter(&trace, stacks) {}

    timeline::DeviceTrace trace;
    EventSorter sorter;
  };

  bool TakeOfLabelled(const RawEvent& event);
  void FinishLabelled();

  timeline::DeviceTrace* const trace_;
  const bool stacks_;
  EventSorter unlabelled_;
  std::map<std::string, std::unique_ptr<Rank>, std::less<>> labelled_;  // by label
};

}  // namespace fullbore::ingest::kineto
