// What the parts of the search share: the trials so far, the best of them, and what their recordings say. search.cc
// turns what is on or off, search_batch.cc the batch, search_workers.cc the loader's workers and the training's
// threads, which share the cores; search_proof.cc proves the answer, and measures batches beside it if they were not to
// be turned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "explain/diagnose/thresholds.h"
#include "tune/search/search.h"

namespace fullbore::tune {

using diagnose::kWorkersACore;

inline constexpr double kWorthTrying = 1.02;  // times as fast: less cannot be told from noise
inline constexpr double kLeastBusy = 0.02;    // below, the rate it could take is lost in its wait

// The samples/s that the training could process, at the batch of this trial, if it never waited for them.
inline double TrainingRate(const Trial& trial) {
  return trial.rate->mean / std::clamp(trial.busy.value_or(1), kLeastBusy, 1.0);
}

// One batch size, as measured.
struct BatchTrial {
  int64_t batch = 0;
  double rate = 0;  // samples/s; if the loader is tuned later, what the training could take
  const Trial* trial = nullptr;
};

class Searcher {
 public:
  Searcher(const Question& question, Laboratory& laboratory) : question_(question), laboratory_(laboratory) {}
  Answer Run();

 private:
  const Trial* Try(Settings settings, const std::string& why, std::optional<double> predicted = std::nullopt);
  const Trial* Find(const Settings& settings) const;
  const Trial& Best() const { return trials_[best_]; }
  bool IsFit(const Trial& trial) const { return trial.ok() && LeavesHeadroom(trial, trials_.front()); }
  double BestRate() const { return Best().rate->mean; }
  Settings With(const std::string& name, const nlohmann::json& value) const;
  Settings Normal(Settings settings) const;
  void Adopt(const Trial* trial);
  bool MayTurn(const std::string& knob) const {
    const bool is_asked = question_.knobs.contains(knob) || (apart_ && knob == "batch_size");
    return is_asked && !refused_.contains(knob) && !IsOver();
  }
  void Skip(const std::string& knob, const std::string& why);
  void NoteRefusal(const Trial& trial);
  std::optional<std::vector<int64_t>> Given(const std::string& knob) const;
  const Known& Seen();
  std::optional<double> Predicted(int64_t workers, int64_t threads);
  double Near() const { return NearBest(question_, *Best().rate); }
  double LoaderAtMost();
  // For the search: the rest belongs to the proof.
  bool IsOver() const;

  void Switches();
  void TrySwitch(const std::string& knob, const nlohmann::json& value, const std::string& why);
  void Batch();
  bool LoaderIsFixed() const { return !question_.knobs.contains("num_workers") || loader_is_chosen_; }
  double RateOfBatch(const Trial& trial) const;
  std::vector<int64_t> Sizes(int64_t first) const;
  std::vector<BatchTrial> MeasuredBatches(int64_t first) const;
  std::optional<int64_t> KneeOf(const std::vector<BatchTrial>& measured, const std::vector<int64_t>& sizes);
  static int64_t SecondBatch(int64_t first, const std::vector<int64_t>& sizes);
  static std::optional<double> PredictedAt(int64_t batch, const std::vector<BatchTrial>& measured);
  int64_t LargestSafe(int64_t first) const;
  void Workers();
  std::optional<int64_t> FewerThreads(int64_t workers);
  int64_t ThreadsBeside(int64_t workers);
  std::optional<double> PredictedWith(int64_t workers) { return Predicted(workers, ThreadsBeside(workers)); }
  int64_t FirstGuess(int64_t most);
  int64_t Allowed(int64_t workers) const;
  std::optional<size_t> TryWorkers(int64_t workers, int64_t threads, const std::string& why);
  std::optional<size_t> BestWith(int64_t workers, const std::string& why);
  struct WorkersTried;
  bool MayTryMore(const WorkersTried& tried) const;
  void GiveCoresToWorkers(int64_t workers, WorkersTried& tried);
  int64_t MoreWorkers(int64_t workers, const Trial& trial, int64_t most) const;
  void RaiseWorkers(int64_t workers, int64_t most, WorkersTried& tried);
  void LowerWorkers(WorkersTried& tried);
  void Threads();
  bool WorkersAreKnown(const Settings& settings) const;
  int64_t WorkersOf(const Settings& settings) const;
  int64_t WorkersNow() const { return WorkersOf(Best().settings); }
  void OwnValues();
  void Grid();
  std::optional<Trial> Finalist() const;
  std::optional<Trial> TryToProve(const Trial& finalist);
  std::optional<PairOfTrials> PairToProve(size_t earlier, const Trial& baseline, const Trial& finalist);
  const Trial& NoteProof(Trial trial, const Trial& finalist);
  void Prove(const Trial& baseline, const Trial& finalist, Proof& proof);
  void ProveTheBest();
  void BatchApart();

  const Question& question_;
  Laboratory& laboratory_;
  Known known_;  // of the script as it is
  std::vector<Trial> trials_;
  std::vector<Proof> proofs_;
  size_t best_ = 0;
  Known seen_;  // of the best so far: what its recording says of the settings adopted since
  size_t seen_of_ = 0, asked_about_ = 0;  // trials
  // According to that recording: how many times as fast with other workers and threads.
  std::map<std::pair<int64_t, int64_t>, std::optional<double>> predicted_;
  std::optional<LargerBatch> larger_batch_;
  bool apart_ = false;  // trials now are beside the answer
  bool loader_is_chosen_ = false;
  bool ended_early_ = false;
  // Whether, beside workers, the training was faster with fewer threads; nothing if not measured.
  std::optional<bool> threads_give_way_;
  std::set<std::string> refused_;  // knobs that this script refuses, whatever else is set
  std::vector<std::string> not_tried_;
};

}  // namespace fullbore::tune
