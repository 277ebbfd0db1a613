// The engine's threads: they claim rows, carry them into the batch, and finish batches.
#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/clock.h"
#include "loader/core/engine/engine.h"

namespace fullbore::loader {
namespace {

// A claim costs a lock: take enough rows to make that negligible, but so few that one thread holds up no
// batch.
constexpr double kClaimNs = 100'000;
constexpr uint64_t kMaxClaim = 64;

// If this many samples in a row are bad, the budget for bad samples ends the epoch anyway.
constexpr uint64_t kStandInTries = 100;

uint64_t Since(int64_t start_ns) { return static_cast<uint64_t>(MonotonicNs() - start_ns); }

}  // namespace

void Loader::Engine::Work() {
  prctl(PR_SET_NAME, "fullbore-load");
  Carrier carrier;
  {
    const std::lock_guard lock(mutex_);
    activities_.push_back(carrier.activity);
  }
  for (Claim claim; ClaimRows(carrier, claim); claim = {}) {
    const int64_t start = MonotonicNs();
    for (uint64_t row = claim.first_row; row < claim.first_row + claim.rows; ++row) {
      if (!claim.batch->abandoned.load(std::memory_order_relaxed)) DoRow(carrier, *claim.batch, row);
    }
    FinishRows(carrier, claim, Since(start));
  }
}

// --- Claiming

bool Loader::Engine::ClaimRows(Carrier& carrier, Claim& claim) {
  carrier.activity->doing.store(nullptr, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  for (;;) {
    const ThreadSetting& setting = tuner_.setting();
    if (ending_ || threads_ > setting.decode_threads + setting.read_threads) {
      // Before any other thread looks: if all that see one thread too many left, none would remain.
      std::erase(activities_, carrier.activity);
      --threads_;
      threads_gone_.notify_all();
      return false;
    }
    const bool rows_left =
        !pending_.empty() && !pending_.back()->ends_epoch && claimed_rows_ < pending_.back()->cut.rows;
    if (!interrupted_ && (rows_left || OpenBatch())) break;
    idle_.Change(+1, MonotonicNs());
    room_.wait(lock);
    idle_.Change(-1, MonotonicNs());
  }
  claim.batch = pending_.back();
  const uint64_t left = claim.batch->cut.rows - claimed_rows_;
  const auto worthwhile = static_cast<uint64_t>(row_ns_ > 0 ? kClaimNs / row_ns_ : 1);
  const uint64_t fair = left / (2 * static_cast<uint64_t>(threads_));
  claim.rows = std::clamp<uint64_t>(std::min(worthwhile, fair), 1, std::min(left, kMaxClaim));
  claim.first_row = claimed_rows_;
  claimed_rows_ += claim.rows;
  return true;
}

bool Loader::Engine::OpenBatch() {
  if (pending_.size() >= Capacity()) return false;
  auto batch = std::make_shared<Pending>();
  batch->plan = claim_plan_;
  if (claim_index_ == claim_plan_->cuts.batches()) {
    batch->ends_epoch = batch->complete = true;
    pending_.push_back(std::move(batch));
    claim_plan_ = PlanOf(claim_plan_->epoch + 1, 0);
    claim_index_ = 0;
    ready_.notify_one();
    return OpenBatch();
  }
  auto slot = pool_->Take();
  if (!slot.ok()) {  // with a batch in progress the consumer will free a slot; otherwise it must learn why
                     // nothing comes
    if (!pending_.empty()) return false;
    batch->storage_error = slot.error();
    batch->complete = true;
    batch->ends_epoch = true;
    pending_.push_back(std::move(batch));
    ready_.notify_one();
    return false;
  }
  batch->index = claim_index_++;
  batch->cut = claim_plan_->cuts.At(batch->index);
  batch->slot = std::move(*slot);
  batch->ids.resize(batch->cut.rows);
  batch->good.assign(batch->cut.rows, 0);
  batch->rows_left.store(batch->cut.rows, std::memory_order_relaxed);
  claimed_rows_ = 0;
  pending_.push_back(std::move(batch));
  return true;
}

// --- One row

void Loader::Engine::DoRow(Carrier& carrier, Pending& batch, uint64_t row) {
  const uint64_t id = batch.plan->order.At(batch.plan->cuts.PositionOf(batch.cut, row));
  batch.ids[row] = id;
  auto done = TryRow(carrier, batch, row);
  batch.good[row] = done.ok();
  if (!done.ok()) ReportBad(batch, row, done.error());
}

// A permit to use a core, and what a decoder keeps from image to image.
class Loader::Engine::Permit {
 public:
  Permit(Engine& engine, Carrier& carrier) : engine_(engine) {
    std::unique_lock lock(engine.permit_mutex_);
    if (engine.permits_taken_ >= engine.permits_) {
      const int64_t start = MonotonicNs();
      carrier.activity->doing.store(nullptr, std::memory_order_relaxed);
      engine.permit_.wait(lock, [&] { return engine.permits_taken_ < engine.permits_; });
      carrier.counts[kRead].blocked_ns += Since(start);
    }
    ++engine.permits_taken_;
    if (engine.idle_image_workers_.empty()) return;
    worker_ = std::move(engine.idle_image_workers_.back());
    engine.idle_image_workers_.pop_back();
  }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;
  ~Permit() {
    const bool decoder_threw = std::uncaught_exceptions() > 0;  // its state is unknown
    {
      const std::lock_guard lock(engine_.permit_mutex_);
      --engine_.permits_taken_;
      if (worker_ && !decoder_threw && std::ssize(engine_.idle_image_workers_) < engine_.permits_) {
        engine_.idle_image_workers_.push_back(std::move(worker_));
      }
    }
    engine_.permit_.notify_one();
  }

  ImagePlan::Worker* worker() {  // null if no field is an image
    if (!worker_ && engine_.layout_.has_images()) {
      worker_ = std::make_unique<ImagePlan::Worker>(engine_.image_plan_);
    }
    return worker_.get();
  }

 private:
  Engine& engine_;
  std::unique_ptr<ImagePlan::Worker> worker_;
};

// Whatever the decoders' libraries or a user stage throw is a failure of this sample only.
Result<void> Loader::Engine::TryRow(Carrier& carrier, Pending& batch, uint64_t row) {
  try {
    auto written = WriteSample(carrier, batch, row);
    if (!written.ok() || !user_stage_) return written;
    return RunUserStage(carrier, batch, row);
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInternal, error.what(), ""};
  }
}

Result<void> Loader::Engine::WriteSample(Carrier& carrier, Pending& batch, uint64_t row) {
  const uint64_t id = batch.ids[row];
  Activity& activity = *carrier.activity;
  const int64_t start = MonotonicNs();
  activity.sample_id.store(id, std::memory_order_relaxed);
  activity.since_ns.store(start, std::memory_order_relaxed);
  activity.doing.store("reading", std::memory_order_relaxed);
  auto read = source_->Read(id, carrier.sample);
  StageCount& reading = carrier.counts[kRead];
  reading.busy_ns += Since(start);
  if (!read.ok()) return read;
  ++reading.samples;
  uint64_t bytes = 0;
  for (const FieldValue& field : carrier.sample.fields) bytes += field.bytes.size();
  reading.bytes += bytes;

  WriteTimes times;
  auto written = [&] {
    Permit permit(*this, carrier);
    activity.since_ns.store(MonotonicNs(), std::memory_order_relaxed);
    activity.doing.store("decoding", std::memory_order_relaxed);
    const SampleSeed seed = SampleSeed::Of(options_.seed, batch.plan->epoch, id);
    return WriteRow(layout_, carrier.sample, seed, permit.worker(), *batch.slot, row, times);
  }();
  const auto count = [&](Stage stage, uint64_t busy_ns) {
    carrier.counts[stage].busy_ns += busy_ns;
    carrier.counts[stage].bytes += bytes;
    ++carrier.counts[stage].samples;
  };
  if (layout_.has_images()) {
    count(kDecode, times.image.decode_ns);
    count(kTransform, times.image.transform_ns);
  }
  count(kCollate, times.collate_ns);
  return written;
}

Result<void> Loader::Engine::RunUserStage(Carrier& carrier, Pending& batch, uint64_t row) {
  const int64_t start = MonotonicNs(), start_on_core = ThreadCpuNs();
  carrier.activity->since_ns.store(start, std::memory_order_relaxed);
  carrier.activity->doing.store("your own function is working on", std::memory_order_relaxed);
  const uint64_t id = batch.ids[row];
  Row view{id, batch.plan->epoch, layout_.ViewOfRow(*batch.slot, row),
           Mix(SampleSeed::Of(options_.seed, batch.plan->epoch, id).value), batch.slot};
  auto done = user_stage_(view);
  const uint64_t took = Since(start);
  const auto on_core = std::min(took, static_cast<uint64_t>(ThreadCpuNs() - start_on_core));
  carrier.counts[kUser].busy_ns += on_core;
  carrier.counts[kUser].blocked_ns += took - on_core;
  ++carrier.counts[kUser].samples;
  return done;
}

void Loader::Engine::ReportBad(Pending& batch, uint64_t row, Error error) {
  const uint64_t id = batch.ids[row];
  std::string name = source_->NameOf(id);
  const std::lock_guard lock(mutex_);
  if (error.code == ErrorCode::kUnavailable) {
    // The storage is at fault, not the sample: nothing is left out, and the batch is read again.
    if (!batch.storage_error) batch.storage_error = std::move(error);
    return;
  }
  // Rows that are only padding are reported where they count as samples.
  if (row < batch.cut.valid) batch.bad.push_back({batch.plan->epoch, id, std::move(name), std::move(error)});
}

// --- Finishing

void Loader::Engine::FinishRows(Carrier& carrier, const Claim& claim, uint64_t took_ns) {
  Pending& batch = *claim.batch;
  const bool last = batch.rows_left.fetch_sub(claim.rows, std::memory_order_acq_rel) == claim.rows;
  if (last) Complete(carrier, batch);
  const std::lock_guard lock(mutex_);
  const double row_ns = static_cast<double>(took_ns) / static_cast<double>(claim.rows);
  row_ns_ += (row_ns - row_ns_) / 8;
  samples_done_ += claim.rows;
  for (size_t stage = 0; stage < kStages; ++stage) {
    StageCount& total = totals_[stage];
    StageCount& mine = carrier.counts[stage];
    total.samples += mine.samples;
    total.bytes += mine.bytes;
    total.busy_ns += mine.busy_ns;
    total.blocked_ns += mine.blocked_ns;
    mine = {};
  }
  if (!last) return;
  batch.complete = true;
  if (!pending_.empty() && pending_.front() == claim.batch) ready_.notify_one();
}

// Closes the gaps that bad samples left: with rows from the
// end, or with copies if every batch must be full.
void Loader::Engine::Complete(Carrier& carrier, Pending& batch) {
  const uint64_t rows = batch.cut.rows;
  batch.valid.assign(rows, 1);
  for (uint64_t row = batch.cut.valid; row < rows; ++row) batch.valid[row] = 0;
  auto good = static_cast<uint64_t>(std::count(batch.good.begin(), batch.good.end(), 1));
  batch.rows = rows;
  if (good == rows) return;
  if (good == 0 && options_.world_size > 1) good = StandIn(carrier, batch) ? 1 : 0;
  uint64_t to = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    if (!batch.good[row]) continue;
    if (to != row) {
      layout_.CopyRow(*batch.slot, row, to);
      batch.ids[to] = batch.ids[row];
      batch.valid[to] = batch.valid[row];
    }
    ++to;
  }
  batch.rows = good;
  if (options_.pad_last && good > 0) {
    for (uint64_t row = good; row < rows; ++row) {
      layout_.CopyRow(*batch.slot, row % good, row);
      batch.ids[row] = batch.ids[row % good];
      batch.valid[row] = 0;
    }
    batch.rows = rows;
  }
  batch.ids.resize(batch.rows);
  batch.valid.resize(batch.rows);
}

// An empty batch would leave its rank one step behind the others, and all of
// them would wait for each other at the end of the epoch. So its first row
// becomes a sample from later in the epoch, marked as padding.
bool Loader::Engine::StandIn(Carrier& carrier, Pending& batch) {
  if (batch.abandoned.load(std::memory_order_relaxed)) return false;  // its rows were left out, not bad
  {
    const std::lock_guard lock(mutex_);
    if (batch.storage_error) return false;  // nothing is lost: the batch is read again
  }
  const uint64_t tries = std::min(kStandInTries, source_->size() - std::min(batch.cut.rows, source_->size()));
  for (uint64_t behind = 0; behind < tries; ++behind) {
    batch.ids[0] = batch.plan->order.At(batch.plan->cuts.PositionOf(batch.cut, batch.cut.rows + behind));
    const auto done = TryRow(carrier, batch, 0);
    if (done.ok()) {
      batch.good[0] = 1;
      batch.valid[0] = 0;
      return true;
    }
    if (done.error().code != ErrorCode::kUnavailable) continue;  // reported where that sample counts
    ReportBad(batch, 0, done.error());
    return false;
  }
  return false;
}

}  // namespace fullbore::loader
