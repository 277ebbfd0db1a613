// The search: which settings to try next, and what to recommend in the end. It runs no process: trials come through a
// Laboratory, so that it can be tried on surfaces whose best is known.
//
// Instead of a grid, it asks what the recordings say, of the script as it is and of the best setting since: how fast the
// training could be if it never waited, and how fast one worker loads (workers, and the threads that the training computes
// with beside them: the fewest that come near, then one fewer); what a step costs at two batch sizes (batch: the knee of
// knee.h, one size below, and the largest that memory allows). Both in one model: a trial's rate divided by how busy the
// training was is what it could take, so that a batch can be judged while a loader is too slow, and no batch is made
// larger than the loader can feed. What the recordings say cannot gain is not tried, and the answer says why. A trial is
// ended as soon as it cannot come near the best any more.
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

// What the recording of a trial says. Absent where it is not known.
struct Known {
  Settings own;            // what it does anyway, by knob, as far as it was seen
  double wait = 0;         // for data, of the step
  double fetch_s = 0;      // that one worker needs for a sample; 0: not known
  double fetch_cpu_s = 0;  // of that, on a core; 0: not known
  int64_t ranks = 1;       // beside each other on the machine
  int64_t cores = 1;       // for each of them
  int64_t threads = 0;     // intra-op; 0: not known
  bool device = false;     // the model is on one
  bool images = false;     // batches are of four dimensions
  bool epochs = false;     // the loader began anew while it was looked at
  bool fast_data = false;  // fullbore.data was measured to load the same batches
  bool importing = false;  // its loader's workers do not fork: they import the script again
  double optimizer = 0;    // share of the step
  std::optional<int64_t> memory_limit;
  std::optional<int64_t> epoch_samples;
  std::optional<double> useful_tokens;  // of a sample, where rates count these
  std::string loader_where;             // "/home/u/train.py:57"; empty if not known
  // How many times as fast the replay says it would be; nothing where it cannot say.
  std::function<std::optional<double>(int64_t workers, int64_t threads)> replay;

  std::optional<int64_t> Own(const std::string& knob) const;  // nothing where that is no whole number
};

struct Request {
  Settings settings;
  std::string why;  // "the fewest that deliver 640 samples/s"
  bool proves = false;
  std::optional<double> predicted;       // samples/s
  std::optional<double> hopeless_below;  // samples/s
  MemoryUse memory = {};                 // that it took before; of a pair, to know whether both have room
};

class Laboratory {
 public:
  virtual ~Laboratory() = default;
  virtual Trial Try(const Request& request) = 0;
  // Several, none of which depends on another: at the same time, where the laboratory has room for that. In the order of
  // the requests; without those that it was over before.
  virtual std::vector<Trial> TryAll(const std::vector<Request>& requests);
  // Two that are alive at the same time and take turns, the first of them as the script is; nothing where that cannot be.
  virtual std::optional<PairOfTrials> TryPair(const Request& before, const Request& after);
  // What its recording says; nothing where it cannot be read.
  virtual std::optional<Known> Learn(const Trial& trial) = 0;
  // No time is left, or the user has had enough. A last trial that could not be measured says nothing then, unless it has
  // a reason.
  virtual bool IsOver() const = 0;
  struct Time {
    double left_s = 0, all_s = 0;
  };
  // Of which the search leaves some to the proof; nothing where there is no end to it.
  virtual std::optional<Time> time() const { return std::nullopt; }
};

enum class Objective : uint8_t { kThroughput, kTokens, kCost, kMemory };

struct Question {
  Settings baseline;  // the script as it is: empty, or what stands in the command's placeholders at first
  std::set<std::string> knobs;  // that may be turned
  std::map<std::string, std::vector<nlohmann::json>>
      values;  // of those for which the user gave some, in that order
  double within = 0.05;
  Objective objective = Objective::kThroughput;
  bool exhaustive = false;  // all combinations of `values`
  // What other batches bring to what is recommended, beside the answer: they change training results.
  bool batch_apart = false;
};

constexpr double kHeadroom = 0.9;  // of the memory, that what is recommended may fill

// Whether it leaves as much memory as one should, or at least as much as the script as it is; also where nothing is known.
bool LeavesHeadroom(const Trial& trial, const Trial& baseline);

// The part of the best rate that counts as near it. `best` is known to its interval only: aiming at all that may be lost
// would lose more half of the time.
double NearBest(const Question& question, const Rate& best);

// The smallest batch that comes near the fastest.
struct LargerBatch {
  Trial trial;
  Proof proof;  // over what is recommended
};

struct Answer {
  std::vector<Trial> trials;  // in the order in which they were made
  std::vector<Trial> means;   // of all trials of each setting that was measured to the end, in that order
  // Two of these. What is recommended is proven, or the script as it is.
  std::optional<Trial> baseline, recommended;
  Proof::Gain gain;  // recommended over baseline
  std::vector<Proof>
      proofs;  // in the order in which they were made: what a proof refutes makes room for the next
  std::optional<Trial> unproven;  // what looks better than the recommended one, and no proof has decided
  std::optional<LargerBatch> larger_batch;  // nothing where none is faster, or none was asked for
  std::vector<Trial> pareto;                // those of throughput against memory, fastest first
  std::vector<std::string> not_tried;       // with the reason
  bool ended_early = false;                 // the laboratory was over before all was tried and proven
  Known known;                              // of the script as it is
};

Answer Search(const Question& question, Laboratory& laboratory);

// What the trials favour, of which the first is the script as it is: the smallest that comes near the fastest, without
// what died, filled the memory or was refuted by one of the proofs. Nothing where nothing could be measured.
std::optional<Trial> FavouriteOf(const Question& question, const Known& known,
                                 const std::vector<Trial>& trials, const std::vector<Proof>& proofs);

// Whether it asks less of the machine than the script as it is: worth having at the same speed, too.
bool AsksForLess(const Question& question, const Known& known, const Trial& trial, const Trial& baseline);

// What follows from the trials, and from the proofs that were made with some of them.
Answer Conclude(const Question& question, const Known& known, std::vector<Trial> trials,
                std::vector<Proof> proofs);

}  // namespace fullbore::tune
