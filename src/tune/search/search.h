// The search: which settings to try next, and what to recommend in the end. It starts no processes: trials come through
// a Laboratory, so that it can be tested on surfaces whose optimum is known.
//
// Instead of a grid, it uses the recordings of the script as it is and of the best settings so far. They tell how fast
// the training could be if it never waited and how fast one worker loads; from these follow the number of workers and
// of the training's threads (the fewest that come near the best, then one fewer). They also tell what a step costs at
// two batch sizes, from which follows the batch (the knee of knee.h, one size below, and the largest that memory
// allows). One model joins the two: a trial's rate divided by how busy the training was is the rate it could take, so a
// batch can be judged although the loader is too slow, and none is chosen larger than the loader can feed. What cannot
// help, according to the recordings, is not tried, and the answer says why. A trial is stopped once it can no longer
// come near the best.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tune/proof/proof.h"
#include "tune/trial/memory.h"
#include "tune/trial/trial.h"

namespace fullbore::tune {

// What the recording of a trial says. Absent if unknown.
struct Known {
  Settings own;            // the script's own, by knob, as far as seen
  double wait = 0;         // for data, as a share of the step
  double fetch_s = 0;      // of one worker for a sample; 0: unknown
  double fetch_cpu_s = 0;  // of these, on a core; 0: unknown
  int64_t ranks = 1;       // on this machine
  int64_t cores = 1;       // for each of them
  int64_t threads = 0;     // intra-op; 0: not known
  bool device = false;     // the model is on one
  bool images = false;     // batches have four dimensions
  bool epochs = false;     // the loader began a new epoch while recorded
  bool fast_data = false;  // fullbore.data was measured to load the same batches
  bool importing = false;  // its loader's workers do not fork: they import the script again
  double optimizer = 0;    // share of the step
  std::optional<int64_t> memory_limit;
  std::optional<int64_t> epoch_samples;
  std::optional<double> useful_tokens;  // per sample, if rates count them
  std::string loader_where;             // "/home/u/train.py:57"; empty if not known
  // How many times as fast the replay predicts it to be; nothing where it cannot tell.
  std::function<std::optional<double>(int64_t workers, int64_t threads)> replay;

  std::optional<int64_t> Own(const std::string& knob) const;  // nothing unless it is a whole number
};

struct Request {
  Settings settings;
  std::string why;  // "the fewest that deliver 640 samples/s"
  bool proves = false;
  std::optional<double> predicted;       // samples/s
  std::optional<double> hopeless_below;  // samples/s
  MemoryUse memory = {};                 // of earlier trials: whether a pair has room side by side
};

class Laboratory {
 public:
  virtual ~Laboratory() = default;
  virtual Trial Try(const Request& request) = 0;
  // Several that do not depend on each other: at the same time, where the laboratory has room for that. In the order of
  // the requests, without those for which no time was left.
  virtual std::vector<Trial> TryAll(const std::vector<Request>& requests);
  // Two that are alive at the same time and take turns, the first being the script as it is; nothing if that is
  // impossible.
  virtual std::optional<PairOfTrials> TryPair(const Request& before, const Request& after);
  // What its recording says; nothing if it cannot be read.
  virtual std::optional<Known> Learn(const Trial& trial) = 0;
  // No time is left, or the user ended it. A last trial that could not be measured then tells nothing, unless it gives
  // a reason.
  virtual bool IsOver() const = 0;
  struct Time {
    double left_s = 0, all_s = 0;
  };
  // The search leaves some of it to the proof; nothing if time is unlimited.
  virtual std::optional<Time> time() const { return std::nullopt; }
};

enum class Objective : uint8_t { kThroughput, kTokens, kCost, kMemory };

struct Question {
  Settings baseline;  // the script as it is: empty, or what stands in the command's placeholders at first
  std::set<std::string> knobs;                                // that may be turned
  std::map<std::string, std::vector<nlohmann::json>> values;  // where the user gave some, in that order
  double within = 0.05;
  Objective objective = Objective::kThroughput;
  bool exhaustive = false;  // all combinations of `values`
  // Measure the gain of other batches beside the answer: they change training results.
  bool batch_apart = false;
};

constexpr double kHeadroom = 0.9;  // of the memory: what a recommendation may fill

// Whether it leaves enough memory free, or at least as much as the script as it is; true if nothing is known.
bool LeavesHeadroom(const Trial& trial, const Trial& baseline);

// The share of the best rate that counts as near it. `best` is only known to within its interval: if the whole
// allowance were used up, more than that would be lost half of the time.
double NearBest(const Question& question, const Rate& best);

// The smallest batch that comes near the fastest.
struct LargerBatch {
  Trial trial;
  Proof proof;  // against the recommendation
};

struct Answer {
  std::vector<Trial> trials;  // in the order in which they were made
  std::vector<Trial> means;   // of all trials of each setting that was measured to the end, in that order
  // Two of these. The recommendation is either proven, or the script as it is.
  std::optional<Trial> baseline, recommended;
  Proof::Gain gain;                         // recommended over baseline
  std::vector<Proof> proofs;                // in their order: after a refutation, the next is tried
  std::optional<Trial> unproven;            // looks better than the recommendation, but undecided
  std::optional<LargerBatch> larger_batch;  // nothing if none is faster, or none was asked for
  std::vector<Trial> pareto;                // of throughput against memory, fastest first
  std::vector<std::string> not_tried;       // with the reason
  bool ended_early = false;                 // the time was over before everything was tried and proven
  Known known;                              // of the script as it is
};

Answer Search(const Question& question, Laboratory& laboratory);

// What the trials favour (the first is the script as it is): the smallest settings that come near the fastest, except
// those that failed, filled the memory or were refuted by a proof. Nothing if nothing could be measured.
std::optional<Trial> FavouriteOf(const Question& question, const Known& known,
                                 const std::vector<Trial>& trials, const std::vector<Proof>& proofs);

// Whether it needs less of the machine than the script as it is, and so is worth having at the same speed.
bool AsksForLess(const Question& question, const Known& known, const Trial& trial, const Trial& baseline);

// The answer that follows from the trials and the proofs made of them.
Answer Conclude(const Question& question, const Known& known, std::vector<Trial> trials,
                std::vector<Proof> proofs);

}  // namespace fullbore::tune
