// Turns a training process's events, as the hook wrote them, into steps whose wall
// time is divided into shares.
//
// Events of one thread nest; each nanosecond belongs to the innermost event that covers it. Time that no
// event covers is classified by its neighbours: between the forward and the backward pass the loss is
// computed (forward), between two evaluation events the validation loop runs; all else is host_other. Which
// forward passes are an evaluation's is told in passes.h.
//
// Where a step calls no module at all, it computes with plain tensors: what no event covers before its backward pass
// is its computation, but for the part in which the samples of the line sampler saw something else.
//
// A script without a DataLoader feeds its steps by other means: a thread and a queue, a generator, an iterator
// of its own. No event covers these; what tells them from other work in the loop are the samples of the line
// sampler. Time that no event covers before a forward pass is data_wait in the ratio in which the latest such
// samples saw the thread wait for a batch, or run the iterator that the loop goes through. The first steps are
// held back until there are enough samples to tell. Where a DataLoader gives the batches, only waits for other processes
// count: for those that answer its prompts.
//
// Where no optimizer ever steps (an evaluation, weights that are updated by hand), a batch counts as a step: from
// one batch that a loader delivers to the next, or from one forward pass to the next that has a backward pass
// between them. Whether that is so is only known at the end.
//
// A sample of a step that takes twice the median of those so far is counted as one of a slow step: lines that are seen
// there, and elsewhere not, are what makes it slow.
//
// Events arrive in the order of their ends. Bounded: a step keeps at most kMaxPendingEvents of
// them, plus the one that ends it.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "record/channel.h"
#include "record/recording.h"
#include "record/sketch.h"
#include "timeline/missing_events.h"
#include "timeline/passes.h"

namespace fullbore::timeline {

inline constexpr size_t kMaxPendingEvents = 1 << 16;
inline constexpr size_t kMaxBatches = 1 << 14;  // the latest, in a process without an optimizer

// What a sample of the line sampler says, beside its time.
struct LineHit {
  record::Share share;
  record::HostOther part;
  int64_t line;  // its id in the channel
  record::Activity activity;
  bool in_iterator;
  bool slow = false;  // in a slow step

  auto operator<=>(const LineHit&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
};

// Backward passes of the training, where it is known which of them exchanged gradients with other ranks.
struct Exchanges {
  int64_t steps = 0, passes = 0;
  int64_t exchanging = 0;
  int64_t early = 0;  // of these, followed by another one before the optimizer used the gradients
  // In collectives that Python calls, as those of wrappers that shard the model; and in those that reduce.
  int64_t collectives_ns = 0, reducing_ns = 0;
};

// Steps that our own profiler slowed down are counted, and left out.
class HostSteps {
 public:
  void OnEvent(const record::ChannelRecord& event);

  // Steps completed since the last call; with `last` those that are held back as well.
  std::vector<record::Step> TakeSteps(bool last = false);

  // Batches that count as steps if no optimizer steps, so far.
  size_t batches() const { return batches_.size(); }
  // Makes steps of them, to be called at the end. False if there are too few, or if an optimizer stepped.
  bool TakeBatchesForSteps();

  // Line sampler hits since the last call.
  std::map<LineHit, int64_t> TakeLineHits();

  bool IsTrainingLoader(uint16_t loader) const { return training_loaders_.count(loader) != 0; }
  bool samples_known() const { return samples_known_; }
  const Passes::Totals& passes() const { return pass_kinds_.totals(); }
  const Passes::Validations& validations() const { return pass_kinds_.validations(); }
  const Exchanges& exchanges() const { return exchanges_; }
  // Most steps called no module: their computation is told by what it is not.
  bool computes_unseen() const { return 2 * steps_without_module_ > steps_divided_; }
  uint64_t dropped_events() const { return dropped_; }
  int64_t missed_ns() const { return missing_.ns(); }  // left out of the steps (missing_events.h)

 private:
  struct Segment {
    int64_t begin_ns, end_ns;
    bool covered;  // by an event; otherwise to be named by its neighbours
    record::Share share;
    record::HostOther part;
    bool before_forward = false;  // unnamed, and a forward pass in training is what comes next
    bool computes = false;        // the same before a backward pass, where no module is called in the step
  };
  static void NameMarked(std::vector<Segment>& segments);
  struct HeldStep {
    record::Step step;
    int64_t before_forward_ns = 0;  // of its host_other, unnamed
    int64_t computes_ns = 0;        // of that, in a step that calls no module
  };
  struct Feeding {  // of the samples before forward passes
    int64_t all = 0, seen = 0;
    double ratio() const;
  };

  // Whether waiting for this loader is waiting for data: of the training, or of what there is instead.
  bool Feeds(uint16_t loader) const { return !stepped_ || IsTrainingLoader(loader); }
  bool BeginsBatch(const record::ChannelRecord& event);
  void CloseBatch(uint16_t thread, int64_t end_ns);
  void CloseStep(const record::ChannelRecord& boundary);
  // Since the step before.
  void CountCores(const record::ChannelRecord& boundary, record::Step& step);
  HeldStep StepOf(std::vector<record::ChannelRecord> events, uint16_t thread, int64_t begin_ns,
                  int64_t end_ns);
  record::Step WithFeeding(const HeldStep& held) const;
  bool KnowsWhatFeeds() const;
  void Release();
  void LearnTrainingLoaders(const std::vector<record::ChannelRecord>& events);
  void LearnLoadersOfEachStep(const std::vector<record::ChannelRecord>& events);
  std::vector<Segment> Divide(const std::vector<record::ChannelRecord>& events,
                              const std::vector<PassFor>& passes, int64_t begin_ns, int64_t end_ns) const;
  void MarkTimeBeforeForward(const std::vector<record::ChannelRecord>& events, bool calls_no_module,
                             std::vector<Segment>& segments) const;
  bool IsSlow(int64_t wall_ns);
  void CountExchanges(const std::vector<record::ChannelRecord>& events);
  void CountLineHit(const record::ChannelRecord& hit, const std::vector<Segment>& segments, bool slow);
  Segment Classify(const record::ChannelRecord& event, PassFor pass, int64_t at_ns) const;

  std::vector<record::ChannelRecord> pending_;
  record::ChannelRecord cores_{}, cores_before_{};  // the last kCores, and that of the step before
  std::vector<record::Step> done_;
  bool stepped_ = false;  // an optimizer did
  std::deque<record::Step> batches_;
  std::vector<record::ChannelRecord>
      of_batch_;               // the events of the current one; the first step needs them as well
  std::set<uint16_t> fed_by_;  // the loaders of these batches
  struct SinceBatch {          // the passes since the last one began
    bool any = false, backward = false;
    bool fed = false;      // by a loader, this batch or one before it
    int64_t begin_ns = 0;  // of the batch; 0 before the first
    int64_t end_ns = 0;    // of its last pass, or where the loader was asked in vain for one more
    uint16_t thread = 0;   // of that
  } passes_;
  bool only_backward_ =
      true;  // no module was called and no loader asked: only backward passes tell steps apart
  std::map<LineHit, int64_t> line_hits_;
  Feeding feeding_;
  Feeding
      computing_;  // the same of samples in steps that call no module: seen at what may be its computation
  int64_t steps_divided_ = 0, steps_without_module_ = 0;
  std::vector<HeldStep> held_;
  bool released_ = false;  // the first steps were; later ones are not held back
  std::set<uint16_t> training_loaders_;
  std::map<uint16_t, int> in_a_row_;  // steps in which another loader gave a batch, too
  Passes pass_kinds_;
  record::Sketch wall_ns_;  // of the steps so far
  Exchanges exchanges_;
  int64_t last_end_ns_ = 0;
  int64_t next_index_ = 0;
  bool samples_known_ = true;
  uint64_t dropped_ = 0;
  MissingEvents missing_;
};

}  // namespace fullbore::timeline
