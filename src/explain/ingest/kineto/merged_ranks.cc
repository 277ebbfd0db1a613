#include "explain/ingest/kineto/merged_ranks.h"

#include <utility>
#include <vector>

#include "explain/ingest/kineto/rank_label.h"

namespace fullbore::ingest::kineto {

void MergedRanks::Take(const RawEvent& event) {
  if (!TakeOfLabelled(event)) unlabelled_.Take(event);
}

void MergedRanks::Finish() {
  unlabelled_.Finish();
  FinishLabelled();
}

bool MergedRanks::TakeOfLabelled(const RawEvent& event) {
  constexpr size_t kMaxRanks = 4096;
  if (event.pid.empty() || (event.pid[0] >= '0' && event.pid[0] <= '9')) return false;
  const auto labelled = SplitRankLabel(event.pid);
  if (!labelled) return false;
  auto found = labelled_.find(labelled->label);
  if (found == labelled_.end()) {
    if (labelled_.size() == kMaxRanks) return false;
    found = labelled_.emplace(std::string(labelled->label), std::make_unique<Rank>(stacks_)).first;
  }
  RawEvent own = event;
  own.pid = labelled->rest;
  if (const auto thread = SplitRankLabel(event.tid); thread && thread->label == labelled->label)
    own.tid = thread->rest;
  found->second->sorter.Take(own);
  return true;
}

// What the file says of all of them holds for each.
void MergedRanks::FinishLabelled() {
  std::vector<std::string_view> labels;
  for (const auto& [label, other] : labelled_) labels.push_back(label);
  const std::vector<int> ranks = RanksOfLabels(labels);
  size_t i = 0;
  for (auto& [label, other] : labelled_) {
    timeline::DeviceTrace& trace = other->trace;
    trace.facts.insert(trace_->facts.begin(), trace_->facts.end());
    trace.devices = trace_->devices;
    trace.multiprocessors = trace_->multiprocessors;
    trace.base_ns = trace_->base_ns;
    trace.world_size = trace_->world_size;
    trace.noticed.breaks_off_at = trace_->noticed.breaks_off_at;
    other->sorter.Finish();
    trace.rank = ranks[i++];
    trace_->others.push_back(std::move(trace));
  }
  if (trace_->others.empty() || trace_->has_device_activity() || !trace_->calls.empty() ||
      !trace_->spans.empty())
    return;
  // All events belong to one of them: the first stands for the file.
  timeline::DeviceTrace first = std::move(trace_->others.front());
  first.others = std::move(trace_->others);
  first.others.erase(first.others.begin());
  first.notes.insert(first.notes.begin(), trace_->notes.begin(), trace_->notes.end());
  for (const auto& [what, count] : trace_->left_out) first.left_out[what] += count;
  first.notes.push_back("the file holds the traces of " + std::to_string(labelled_.size()) +
                        " ranks, told apart by the labels of their processes");
  *trace_ = std::move(first);
}

}  // namespace fullbore::ingest::kineto
