// The loader's machinery: threads that each carry samples all the way from the storage into the row of a batch.
//
//   claim rows ─► read ─► (a permit to use a core) decode, transform, write the row ─► user's stage
//
// There is no queue between the stages, and so no copy and no hand-over: a thread claims the next rows of the
// epoch, in order, and that order alone fixes their place in the batch. The number of threads takes the place
// of a queue's length: at most `decode_threads` hold a permit, and all others may sit in a read. Slow storage
// gets more threads that sleep in the kernel, while the cores stay with those that decode. Back-pressure is a
// limit on the number of batches in progress: when it is reached, no thread may claim rows.
//
// Each thread shares ownership of the engine. Shutdown waits briefly for the threads, then abandons those
// that are blocked in a read; they end with that read.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/loader.h"
#include "fullbore/loader/source.h"
#include "loader/core/engine/batch_layout.h"
#include "loader/core/engine/batch_plan.h"
#include "loader/core/engine/sample_order.h"
#include "loader/core/engine/slot_pool.h"
#include "loader/core/engine/tuner.h"

namespace fullbore::loader {

class Loader::Engine : public std::enable_shared_from_this<Loader::Engine> {
 public:
  static Result<std::shared_ptr<Engine>> Make(std::unique_ptr<Source> source, const LoaderOptions& options,
                                              RowFunction user_stage, std::shared_ptr<BatchMemory> memory);

  // As in Loader; called by the consumer's thread.
  Result<std::optional<Batch>> Next(std::optional<std::chrono::milliseconds> patience);
  void SetEpoch(uint64_t epoch);
  LoaderState State() const;
  Result<void> Restore(const LoaderState& state);
  void Shutdown();

  // As in Loader; called by any thread.
  void Stop();
  LoaderStats Stats() const;
  std::vector<Message> TakeMessages();
  std::vector<BadSample> bad_samples() const;
  uint64_t samples() const { return source_->size(); }
  uint64_t batches_per_epoch() const { return PlanOf(0, 0)->cuts.batches(); }
  const std::vector<std::string>& class_names() const { return source_->class_names(); }

 private:
  struct EpochPlan {
    uint64_t epoch = 0;
    SampleOrder order;
    BatchPlan cuts;
  };

  // A batch in progress, or the mark of an epoch's end. Rows are written by the threads that claimed them.
  struct Pending {
    std::shared_ptr<const EpochPlan> plan;
    bool ends_epoch = false;
    uint64_t index = 0;  // in plan->cuts
    BatchPlan::Batch cut;
    std::shared_ptr<Slot> slot;
    std::vector<uint64_t> ids;   // by row, as are the next two
    std::vector<uint8_t> good;   // written into the slot
    std::vector<uint8_t> valid;  // as in Batch
    uint64_t rows = 0;           // once complete: those at the front of the slot
    std::atomic<uint64_t> rows_left = 0;
    std::atomic<bool> abandoned = false;  // the iteration moved elsewhere and no longer needs it
    // Protected by mutex_:
    std::vector<BadSample> bad;
    std::optional<Error> storage_error;
    bool complete = false;
  };

  struct Claim {
    std::shared_ptr<Pending> batch;
    uint64_t first_row = 0, rows = 0;
  };

  // What a thread is doing, for the message that no batch arrives.
  struct Activity {
    std::atomic<const char*> doing = nullptr;
    std::atomic<uint64_t> sample_id = 0;
    std::atomic<int64_t> since_ns = 0;
  };

  enum Stage { kRead, kDecode, kTransform, kUser, kCollate, kStages };
  struct StageCount {
    uint64_t samples = 0, bytes = 0, busy_ns = 0, blocked_ns = 0;
  };
  using StageCounts = std::array<StageCount, kStages>;

  // Waiting time, summed over threads; protected by mutex_.
  class IdleMeter {
   public:
    void Change(int threads, int64_t now) {
      total_ns_ = Total(now);
      threads_ += threads;
      changed_ns_ = now;
    }
    uint64_t Total(int64_t now) const {
      return total_ns_ + static_cast<uint64_t>(threads_) * static_cast<uint64_t>(now - changed_ns_);
    }

   private:
    int threads_ = 0;
    int64_t changed_ns_ = 0;
    uint64_t total_ns_ = 0;
  };

  // What one thread keeps from row to row.
  struct Carrier {
    RawSample sample;
    std::shared_ptr<Activity> activity = std::make_shared<Activity>();
    StageCounts counts;
  };

  Engine(std::unique_ptr<Source> source, const LoaderOptions& options, RowFunction user_stage, ImagePlan plan,
         BatchLayout layout, std::shared_ptr<SlotPool> pool);
  std::shared_ptr<const EpochPlan> PlanOf(uint64_t epoch, uint64_t start) const;

  // Threads (workers.cc).
  void Work();
  bool ClaimRows(Carrier& carrier, Claim& claim);  // false: the thread is to end
  bool OpenBatch();                                // with mutex_ held; false: no room
  void DoRow(Carrier& carrier, Pending& batch, uint64_t row);
  Result<void> TryRow(Carrier& carrier, Pending& batch, uint64_t row);
  Result<void> WriteSample(Carrier& carrier, Pending& batch, uint64_t row);
  Result<void> RunUserStage(Carrier& carrier, Pending& batch, uint64_t row);
  class Permit;
  void ReportBad(Pending& batch, uint64_t row, Error error);
  void FinishRows(Carrier& carrier, const Claim& claim, uint64_t took_ns);
  void Complete(Carrier& carrier, Pending& batch);
  bool StandIn(Carrier& carrier, Pending& batch);

  // Consumer (engine.cc); mutex_ held.
  std::optional<Error> StartThreads();  // the error if there is none
  void Begin(uint64_t epoch, uint64_t start);
  bool FrontIsComplete() const { return !pending_.empty() && pending_.front()->complete; }
  Result<std::optional<Batch>> TakeFront();
  Batch MakeBatch(const Pending& pending) const;
  std::optional<Error> SettleBadSamples(Pending& front);
  void Tune(int64_t now);
  void SayIfStalled(int64_t waiting_since, int64_t now);
  uint64_t Capacity() const;

  const std::unique_ptr<Source> source_;
  const LoaderOptions options_;
  const RowFunction user_stage_;
  const ImagePlan image_plan_;
  const BatchLayout layout_;
  const std::shared_ptr<SlotPool> pool_;
  const std::vector<uint64_t> blocks_;
  const pid_t owner_;  // a forked child has the engine but none of its threads

  mutable std::mutex mutex_;       // protects everything below unless noted otherwise
  std::condition_variable room_;   // threads wait here for rows to claim, or the end
  std::condition_variable ready_;  // the consumer waits here for the front batch to be complete
  std::condition_variable threads_gone_;

  std::deque<std::shared_ptr<Pending>> pending_;  // in the consumer's order; the last one is being claimed
  uint64_t claimed_rows_ = 0;                     // of the last one
  std::shared_ptr<const EpochPlan> claim_plan_;
  uint64_t claim_index_ = 0;
  double row_ns_ = 0;  // smoothed time per row: cheap rows are claimed by the dozen

  uint64_t epoch_ = 0, consumed_ = 0;  // where the consumer is
  uint64_t bad_in_epoch_ = 0;
  bool interrupted_ = false, ending_ = false;

  Tuner tuner_;
  int threads_ = 0;
  IdleMeter idle_;
  std::vector<std::shared_ptr<Activity>> activities_;
  int64_t window_start_ns_ = 0;
  Window window_start_;  // totals when the window began
  uint64_t samples_done_ = 0;
  uint64_t consumer_wait_ns_ = 0, consumer_busy_ns_ = 0, batches_given_ = 0;
  int64_t last_return_ns_ = 0;
  int64_t next_stall_message_ns_ = 0;
  bool stall_was_said_ = false;
  StageCounts totals_;
  std::vector<Message> messages_;
  std::vector<BadSample> bad_samples_;
  uint64_t bad_total_ = 0;

  std::mutex permit_mutex_;  // protects the next three
  std::condition_variable permit_;
  int permits_ = 1, permits_taken_ = 0;
  std::vector<std::unique_ptr<ImagePlan::Worker>> idle_image_workers_;
};

}  // namespace fullbore::loader
