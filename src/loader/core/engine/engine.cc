// The consumer's side of the engine: batches in order, iteration state, tuning, and messages.
#include "loader/core/engine/engine.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/cores.h"
#include "base/text.h"

namespace fullbore::loader {
namespace {

constexpr int64_t kTickNs = 100 * kNsPerMs;  // how often a waiting consumer looks at the tuner and the clock

// A window that the tuner can judge: long enough for several
// samples, short enough that tuning converges quickly.
constexpr int64_t kWindowNs = 250 * kNsPerMs, kLongWindowNs = kNsPerSecond;
constexpr uint64_t kWindowSamples = 16;

// A wait this long for a batch is reported, and again after twice as long.
constexpr int64_t kStallNs = 5 * kNsPerSecond;

// Threads get this long to end; a read of stalled storage cannot be interrupted.
constexpr auto kGrace = std::chrono::seconds(2);

constexpr size_t kMaxBadSamplesKept = 1000;

ThreadLimits LimitsOf(const LoaderOptions& options) {
  ThreadLimits limits;
  limits.max_decode_threads = options.threads > 0 ? options.threads : UsableCores();
  limits.decode_threads_are_fixed = options.threads > 0;
  limits.max_read_threads = options.max_read_threads;
  if (options.prefetch_batches > 0)
    limits.min_ready_batches = limits.max_ready_batches = options.prefetch_batches;
  return limits;
}

void LowerPriority(int by) {
  if (by == 0) return;
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));  // Linux has a niceness per thread
  (void)setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + by);
}

}  // namespace

Loader::Engine::Engine(std::unique_ptr<Source> source, const LoaderOptions& options, RowFunction user_stage,
                       ImagePlan plan, BatchLayout layout, std::shared_ptr<SlotPool> pool)
    : source_(std::move(source)),
      options_(options),
      user_stage_(std::move(user_stage)),
      image_plan_(std::move(plan)),
      layout_(std::move(layout)),
      pool_(std::move(pool)),
      blocks_(source_->blocks()),
      owner_(getpid()),
      tuner_(LimitsOf(options)) {
  Begin(0, 0);
}

std::shared_ptr<const Loader::Engine::EpochPlan> Loader::Engine::PlanOf(uint64_t epoch,
                                                                        uint64_t start) const {
  const OrderOptions order{options_.shuffle, options_.shuffle_shards, options_.seed};
  const BatchPlan::Cut cut{source_->size(),
                           start,
                           static_cast<uint64_t>(options_.batch_size),
                           static_cast<uint64_t>(options_.rank),
                           static_cast<uint64_t>(options_.world_size),
                           LastBatchOf(options_)};
  return std::make_shared<const EpochPlan>(
      EpochPlan{epoch, SampleOrder(blocks_, order, epoch), BatchPlan(cut)});
}

// --- Iteration state

void Loader::Engine::Begin(uint64_t epoch, uint64_t start) {
  for (auto& batch : pending_) batch->abandoned.store(true, std::memory_order_relaxed);
  pending_.clear();
  claim_plan_ = PlanOf(epoch, start);
  claim_index_ = claimed_rows_ = 0;
  if (epoch != epoch_) bad_in_epoch_ = 0;
  epoch_ = epoch;
  consumed_ = start;
  interrupted_ = false;
  room_.notify_all();
}

void Loader::Engine::SetEpoch(uint64_t epoch) {
  if (getpid() != owner_) return;
  const std::lock_guard lock(mutex_);
  // None of its batches was handed out yet: what was read ahead is still valid.
  if (epoch == epoch_ && consumed_ == 0 && !interrupted_) return;
  Begin(epoch, 0);
}

LoaderState Loader::Engine::State() const {
  const std::lock_guard lock(mutex_);
  return {options_.seed, epoch_, consumed_, source_->size()};
}

Result<void> Loader::Engine::Restore(const LoaderState& state) {
  const auto differs = [](const char* what, uint64_t was, uint64_t is) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the state comes from a loader with {} {}, but this one has {}", what, was, is),
        "open the loader over the same data with the same seed, or begin a new epoch with set_epoch"};
  };
  if (state.samples != source_->size()) return differs("number of samples", state.samples, source_->size());
  if (state.seed != options_.seed) return differs("seed", state.seed, options_.seed);
  if (state.consumed > state.samples) return differs("consumed samples", state.consumed, state.samples);
  const std::lock_guard lock(mutex_);
  Begin(state.epoch, state.consumed);
  return {};
}

// --- Next

Result<std::optional<Batch>> Loader::Engine::Next(std::optional<std::chrono::milliseconds> patience) {
  if (getpid() != owner_) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("this loader belongs to process {}, but this is its fork {}", owner_, getpid()),
                 "open the loader in the process that uses it"};
  }
  const int64_t called = MonotonicNs();
  const int64_t deadline = patience ? called + patience->count() * kNsPerMs : INT64_MAX;
  std::unique_lock lock(mutex_);
  if (last_return_ns_ > 0) consumer_busy_ns_ += static_cast<uint64_t>(called - last_return_ns_);
  if (const auto none = StartThreads()) return *none;
  int64_t now = called;
  const auto waited = [&] {
    const int64_t until = MonotonicNs();
    consumer_wait_ns_ += static_cast<uint64_t>(until - now);
    now = last_return_ns_ = until;
  };
  for (;;) {
    while (!FrontIsComplete() && !interrupted_ && now < deadline) {
      ready_.wait_for(lock, std::chrono::nanoseconds(std::min(kTickNs, deadline - now)));
      waited();
      Tune(now);
      SayIfStalled(called, now);
    }
    if (interrupted_) {
      return Error{ErrorCode::kUnavailable, "the loader was stopped",
                   "call set_epoch or load_state_dict to begin again"};
    }
    if (!FrontIsComplete()) return Error{ErrorCode::kTimeout, "no batch is ready yet", "call again"};
    waited();
    Tune(now);
    auto taken = TakeFront();
    // A batch whose samples were all bad is skipped.
    if (taken.ok() && *taken && (*taken)->rows == 0) continue;
    return taken;
  }
}

Result<std::optional<Batch>> Loader::Engine::TakeFront() {
  const std::shared_ptr<Pending> front = pending_.front();
  if (front->storage_error) {
    const Error error = *front->storage_error;
    Begin(epoch_, consumed_);  // the next call tries the storage again
    return error;
  }
  if (stall_was_said_) {
    messages_.push_back({Message::Severity::kInfo, "batches arrive again"});
    stall_was_said_ = false;
  }
  if (const auto error = SettleBadSamples(*front)) return *error;
  pending_.pop_front();
  room_.notify_all();
  if (front->ends_epoch) {
    epoch_ = front->plan->epoch + 1;
    consumed_ = bad_in_epoch_ = 0;
    return std::optional<Batch>();
  }
  consumed_ = front->plan->cuts.ConsumedAfter(front->index);
  ++batches_given_;
  return std::optional<Batch>(MakeBatch(*front));
}

Batch Loader::Engine::MakeBatch(const Pending& pending) const {
  Batch batch;
  batch.fields = layout_.View(*pending.slot, pending.rows);
  batch.rows = static_cast<int64_t>(pending.rows);
  batch.epoch = pending.plan->epoch;
  batch.index = pending.plan->cuts.first_index() + pending.index;
  batch.sample_ids = pending.ids;
  batch.valid = pending.valid;
  batch.owner = pending.slot;
  return batch;
}

// Reports each bad sample once. If the first one ends the iteration, the batch stays, so that a caller who
// goes on after the error still gets its good samples.
std::optional<Error> Loader::Engine::SettleBadSamples(Pending& front) {
  if (front.bad.empty()) return std::nullopt;
  const BadSample first = front.bad.front();
  const bool raises = options_.on_bad_sample == OnBadSample::kRaise;
  for (BadSample& bad : front.bad) {
    ++bad_in_epoch_;
    ++bad_total_;
    if (bad_samples_.size() >= kMaxBadSamplesKept) continue;
    if (!raises || bad.id != first.id)  // the error itself reports that one
      messages_.push_back(
          {Message::Severity::kWarning, fmt::format("left out {}: {}", bad.name, bad.error.text)});
    bad_samples_.push_back(std::move(bad));
  }
  front.bad.clear();
  if (raises) {
    return Error{first.error.code, fmt::format("{}: {}", first.name, first.error.text),
                 "on_bad_sample \"skip\" leaves such samples out and reports them"};
  }
  const double allowed = std::max(1.0, options_.bad_sample_budget * static_cast<double>(source_->size()));
  if (static_cast<double>(bad_in_epoch_) <= allowed) return std::nullopt;
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} samples of epoch {} are bad, more than the allowed {} %; the last one: {}: {}",
                           FormatCount(static_cast<double>(bad_in_epoch_)), epoch_,
                           FormatCount(100 * options_.bad_sample_budget), first.name, first.error.text),
               (first.error.hint.empty() ? "" : first.error.hint + "; ") +
                   "see bad_samples for all of them; a larger bad_sample_budget allows more"};
}

// --- Threads and their number

uint64_t Loader::Engine::Capacity() const {
  const ThreadSetting& setting = tuner_.setting();
  const auto threads =
      static_cast<uint64_t>(setting.decode_threads) + static_cast<uint64_t>(setting.read_threads);
  // Besides the finished batches: those that threads have rows of, and the one being claimed.
  return static_cast<uint64_t>(setting.ready_batches) + 1 +
         threads / static_cast<uint64_t>(options_.batch_size);
}

std::optional<Error> Loader::Engine::StartThreads() {
  const ThreadSetting& setting = tuner_.setting();
  {
    const std::lock_guard lock(permit_mutex_);
    permits_ = setting.decode_threads;
  }
  permit_.notify_all();
  pool_->KeepAtMost(static_cast<size_t>(setting.ready_batches) + 1);
  while (threads_ < setting.decode_threads + setting.read_threads) {
    try {
      std::thread([self = shared_from_this()] {
        LowerPriority(self->options_.nice);
        self->Work();
      }).detach();
      ++threads_;
    } catch (const std::system_error& error) {
      if (threads_ > 0) return std::nullopt;  // slower, but it works
      return Error{ErrorCode::kUnavailable, fmt::format("no thread could be started: {}", error.what()),
                   "check the limits: ulimit -u, and pids.max of the cgroup"};
    }
  }
  return std::nullopt;
}

void Loader::Engine::Tune(int64_t now) {
  Window totals;
  totals.samples = samples_done_;
  totals.consumer_wait_ns = consumer_wait_ns_;
  totals.idle_ns = idle_.Total(now);
  for (const Stage stage : {kDecode, kTransform, kCollate}) totals.core_ns += totals_[stage].busy_ns;
  const Window& start = window_start_;
  const int64_t wall = now - window_start_ns_;
  if (window_start_ns_ > 0) {
    const uint64_t samples = totals.samples - start.samples;
    if (wall < kWindowNs || (samples < kWindowSamples && wall < kLongWindowNs)) return;
    const ThreadSetting before = tuner_.setting();
    tuner_.After({static_cast<uint64_t>(wall), samples, totals.consumer_wait_ns - start.consumer_wait_ns,
                  totals.core_ns - start.core_ns, totals.idle_ns - start.idle_ns});
    if (!(tuner_.setting() == before)) {
      (void)StartThreads();  // some are running
      room_.notify_all();
    }
  }
  window_start_ns_ = now;
  window_start_ = totals;
}

void Loader::Engine::SayIfStalled(int64_t waiting_since, int64_t now) {
  if (!stall_was_said_) next_stall_message_ns_ = kStallNs;
  if (now - waiting_since < next_stall_message_ns_ || FrontIsComplete()) return;
  // The threads go on meanwhile: what one of them does is asked once.
  const char* oldest = nullptr;
  uint64_t sample_id = 0;
  int64_t since_ns = now;
  for (const auto& activity : activities_) {
    const char* const doing = activity->doing.load();
    const int64_t began_ns = activity->since_ns.load();
    if (doing == nullptr || began_ns >= since_ns) continue;
    oldest = doing;
    sample_id = activity->sample_id.load();
    since_ns = began_ns;
  }
  const std::string why =
      oldest == nullptr
          ? ""
          : fmt::format(": {} {} for {}", oldest, source_->NameOf(sample_id), FormatDuration(now - since_ns));
  messages_.push_back({Message::Severity::kWarning,
                       fmt::format("no batch for {}{}", FormatDuration(now - waiting_since), why)});
  stall_was_said_ = true;
  next_stall_message_ns_ *= 2;
}

void Loader::Engine::Stop() {
  if (getpid() != owner_) return;
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  ready_.notify_all();
}

void Loader::Engine::Shutdown() {
  if (getpid() != owner_) return;
  std::unique_lock lock(mutex_);
  ending_ = interrupted_ = true;
  for (auto& batch : pending_) batch->abandoned.store(true, std::memory_order_relaxed);
  room_.notify_all();
  ready_.notify_all();
  // Cancel only ends reads in progress; a thread may have been about to begin one.
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  while (threads_ > 0 && std::chrono::steady_clock::now() < deadline) {
    lock.unlock();
    source_->Cancel();
    lock.lock();
    threads_gone_.wait_for(lock, std::chrono::nanoseconds(kTickNs), [&] { return threads_ == 0; });
  }
}

// --- Statistics and messages

LoaderStats Loader::Engine::Stats() const {
  const std::lock_guard lock(mutex_);
  const ThreadSetting& setting = tuner_.setting();
  LoaderStats stats;
  const std::array<const char*, kStages> names = {"read", "decode", "transform", "user", "collate"};
  for (size_t i = 0; i < kStages; ++i) {
    if (totals_[i].samples == 0) continue;
    StageStats stage;
    stage.name = names[i];
    stage.threads = i == kRead ? threads_ : std::min(threads_, setting.decode_threads);
    stage.samples = totals_[i].samples;
    stage.bytes = totals_[i].bytes;
    stage.busy_ns = totals_[i].busy_ns;
    stage.blocked_ns = totals_[i].blocked_ns + (i == kCollate ? idle_.Total(MonotonicNs()) : 0);
    stats.stages.push_back(stage);
  }
  stats.ready_batches =
      static_cast<int>(std::count_if(pending_.begin(), pending_.end(), [](const auto& batch) {
        return batch->complete && !batch->ends_epoch;
      }));
  stats.ready_capacity = setting.ready_batches;
  stats.batches = batches_given_;
  stats.consumer_wait_ns = consumer_wait_ns_;
  stats.consumer_busy_ns = consumer_busy_ns_;
  stats.pool_bytes = pool_->bytes();
  stats.bad_samples = bad_total_;
  return stats;
}

std::vector<Message> Loader::Engine::TakeMessages() {
  std::vector<Message> all = source_->TakeMessages();
  const std::lock_guard lock(mutex_);
  all.insert(all.end(), std::make_move_iterator(messages_.begin()), std::make_move_iterator(messages_.end()));
  messages_.clear();
  return all;
}

std::vector<BadSample> Loader::Engine::bad_samples() const {
  const std::lock_guard lock(mutex_);
  return bad_samples_;
}

}  // namespace fullbore::loader
