// The public interface of the engine, and the checks of its options.
#include "fullbore/loader.h"

#include <fmt/format.h>

#include <utility>

#include "base/secrets.h"
#include "loader/core/engine/engine.h"
#include "loader/core/engine/memory_cache.h"

namespace fullbore::loader {
namespace {

Result<void> Check(const LoaderOptions& options) {
  const auto wrong = [](const std::string& text, const char* hint) {
    return Error{ErrorCode::kInvalidArgument, text, hint};
  };
  if (options.batch_size < 1) {
    return wrong(fmt::format("batch_size is {}", options.batch_size), "a batch has at least one sample");
  }
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    return wrong(fmt::format("rank {} is impossible with world_size {}", options.rank, options.world_size),
                 "ranks count from 0 to world_size - 1");
  }
  if (options.threads < 0 || options.max_read_threads < 0 || options.prefetch_batches < 0) {
    return wrong(
        fmt::format("threads {}, max_read_threads {}, prefetch_batches {}: none of them may be negative",
                    options.threads, options.max_read_threads, options.prefetch_batches),
        "0 threads or prefetch_batches means as many as are needed");
  }
  if (options.threads > kMaxThreads || options.max_read_threads > kMaxThreads) {
    return wrong(fmt::format("threads {}, max_read_threads {}: more than {}", options.threads,
                             options.max_read_threads, kMaxThreads),
                 "0 threads means as many as are needed");
  }
  if (options.drop_last && options.pad_last) {
    return wrong("drop_last and pad_last contradict each other",
                 "drop_last leaves out a short last batch, pad_last pads it: choose one");
  }
  if (options.shuffle_shards < 0) {
    return wrong(fmt::format("shuffle_shards is {}", options.shuffle_shards), "0 shuffles over everything");
  }
  if (!(options.bad_sample_budget >= 0 && options.bad_sample_budget <= 1)) {
    return wrong(fmt::format("bad_sample_budget is {}", options.bad_sample_budget),
                 "it is a fraction between 0 and 1");
  }
  return {};
}

Result<void> CheckSize(uint64_t samples, const LoaderOptions& options) {
  const auto together = static_cast<uint64_t>(options.batch_size) * static_cast<uint64_t>(options.world_size);
  if (samples == 0) return Error{ErrorCode::kInvalidArgument, "the source has no samples", ""};
  if (options.drop_last && samples < together) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format(
            "{} samples do not fill one batch of {} on each of {} ranks, and short batches are dropped",
            samples, options.batch_size, options.world_size),
        "reduce batch_size, or set drop_last=false"};
  }
  return {};
}

ImagePlanOptions PlanOptionsOf(const LoaderOptions& options) {
  ImagePlanOptions plan;
  plan.dtype = options.dtype;
  plan.layout = options.layout;
  plan.mode = options.image_mode;
  plan.apply_exif_orientation = options.apply_exif_orientation;
  plan.fast_dct = options.fast_dct;
  plan.scaled_decode = options.scaled_decode;
  plan.max_image_pixels = options.max_image_pixels;
  return plan;
}

// The messages of sources name files, which may be URLs with credentials or signatures: all of them pass
// through here.
template <typename T>
Result<T> Masked(Result<T> result) {
  if (result.ok()) return result;
  return MaskUrls(result.error());
}

}  // namespace

Result<std::shared_ptr<Loader::Engine>> Loader::Engine::Make(std::unique_ptr<Source> source,
                                                             const LoaderOptions& options,
                                                             RowFunction user_stage,
                                                             std::shared_ptr<BatchMemory> memory) {
  const auto size = CheckSize(source->size(), options);
  if (!size.ok()) return size.error();
  const ImagePlanOptions plan_options = PlanOptionsOf(options);
  auto plan = ImagePlan::Compile(options.transforms, plan_options);
  if (!plan.ok()) return plan.error();
  if (options.source.memory_cache_bytes > 0) {
    source = WithMemoryCache(std::move(source), options.source.memory_cache_bytes);
  }
  auto layout = BatchLayout::Of(*source, *plan, plan_options, options.batch_size);
  if (!layout.ok()) return layout.error();
  auto pool = std::make_shared<SlotPool>(memory ? std::move(memory) : PrivateMemory(), layout->slot_bytes(),
                                         layout->FieldsWithItems(), static_cast<size_t>(options.batch_size));
  return std::shared_ptr<Engine>(new Engine(std::move(source), options, std::move(user_stage),
                                            std::move(*plan), std::move(*layout), std::move(pool)));
}

Result<Loader> Loader::Open(const LoaderOptions& options, RowFunction user_stage,
                            std::shared_ptr<BatchMemory> memory) {
  const auto checked = Check(options);
  if (!checked.ok()) return checked.error();
  auto source = OpenSource(options.source);
  if (!source.ok()) return MaskUrls(source.error());
  return Over(std::move(*source), options, std::move(user_stage), std::move(memory));
}

Result<Loader> Loader::Over(std::unique_ptr<Source> source, const LoaderOptions& options,
                            RowFunction user_stage, std::shared_ptr<BatchMemory> memory) {
  const auto checked = Check(options);
  if (!checked.ok()) return checked.error();
  auto engine = Engine::Make(std::move(source), options, std::move(user_stage), std::move(memory));
  if (!engine.ok()) return MaskUrls(engine.error());
  return Loader(std::move(*engine));
}

Loader::Loader(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&& other) noexcept {
  if (this != &other) {
    if (engine_) engine_->Shutdown();
    engine_ = std::move(other.engine_);
  }
  return *this;
}
Loader::~Loader() {
  if (engine_) engine_->Shutdown();
}

Result<std::optional<Batch>> Loader::Next() { return Masked(engine_->Next(std::nullopt)); }
Result<std::optional<Batch>> Loader::Next(std::chrono::milliseconds patience) {
  return Masked(engine_->Next(patience));
}
void Loader::SetEpoch(uint64_t epoch) { engine_->SetEpoch(epoch); }
LoaderState Loader::State() const { return engine_->State(); }
Result<void> Loader::Restore(const LoaderState& state) { return Masked(engine_->Restore(state)); }
void Loader::Stop() { engine_->Stop(); }
uint64_t Loader::samples() const { return engine_->samples(); }
uint64_t Loader::batches_per_epoch() const { return engine_->batches_per_epoch(); }
const std::vector<std::string>& Loader::class_names() const { return engine_->class_names(); }
LoaderStats Loader::Stats() const { return engine_->Stats(); }
std::vector<Message> Loader::TakeMessages() {
  std::vector<Message> messages = engine_->TakeMessages();
  for (Message& message : messages) message.text = MaskUrls(message.text);
  return messages;
}
std::vector<BadSample> Loader::bad_samples() const {
  std::vector<BadSample> samples = engine_->bad_samples();
  for (BadSample& bad : samples) {
    bad.name = MaskUrls(bad.name);
    bad.error = MaskUrls(bad.error);
  }
  return samples;
}

}  // namespace fullbore::loader
