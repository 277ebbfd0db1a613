#include "watch/track/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/guarded_file.h"
#include "record/share.h"
#include "watch/track/proto.h"

namespace fullbore::watch {

namespace {

constexpr mode_t kOrdinaryDirectory = 0777;  // minus the umask
constexpr int64_t kString = 7;               // of tensorflow.DataType

// Fields of tensorflow.Event, Summary, Summary.Value and SummaryMetadata.
std::string Event(int64_t wall_ns, int64_t step, const std::string& what) {
  return proto::Double(1, static_cast<double>(wall_ns) / kNsPerSecond) + proto::Integer(2, step) + what;
}
std::string FileVersion() { return proto::Bytes(3, "brain.Event:2"); }
std::string Summary(const std::string& values) { return proto::Bytes(5, values); }
std::string Scalar(const std::string& tag, double value) {
  return proto::Bytes(1, proto::Bytes(1, tag) + proto::Float(2, static_cast<float>(value)));
}
// A text for one of TensorBoard's plugins.
std::string TextFor(std::string_view plugin, const std::string& tag, const std::string& text) {
  const std::string metadata = proto::Bytes(1, proto::Bytes(1, plugin));
  const std::string tensor = proto::Integer(1, kString) + proto::Bytes(2, "") + proto::Bytes(8, text);
  return proto::Bytes(1, proto::Bytes(1, tag) + proto::Bytes(9, metadata) + proto::Bytes(8, tensor));
}

// Fields of tensorboard.plugins.custom_scalar's Layout, Category and Chart. A tag is a regular expression.
std::string Chart(const std::string& title, const std::vector<std::string>& tags) {
  std::string lines;
  for (const std::string& tag : tags) lines += proto::Bytes(1, tag);
  return proto::Bytes(2, proto::Bytes(1, title) + proto::Bytes(2, lines));
}

std::string Layout() {
  std::vector<std::string> shares;
  for (size_t i = 0; i < record::kShareCount; ++i)
    shares.push_back(fmt::format("fullbore/{}", record::Name(static_cast<record::Share>(i))));
  const std::string training = Chart("where a step's time goes", shares) +
                               Chart("samples per second", {"fullbore/samples_per_s"}) +
                               Chart("seconds per step", {"fullbore/step_s"});
  const std::string machine =
      Chart("devices at work", {"system/gpu_utilization/.*", "system/gpu_sm_active/.*"}) +
      Chart("cores at work", {"system/cpu_utilization", "system/cpu_iowait"}) +
      Chart("memory", {"system/memory_used", "system/gpu_memory_used/.*"});
  return proto::Bytes(2, proto::Bytes(1, "training") + training) +
         proto::Bytes(2, proto::Bytes(1, "machine") + machine);
}

std::string Masked(std::string_view bytes) {
  const auto* const at = reinterpret_cast<const uint8_t*>(bytes.data());
  return proto::LittleEndian(MaskCrc(Crc32c(std::span(at, bytes.size()))));
}

Attempt Failed(const std::string& problem) { return {Attempt::End::kFailed, problem}; }

}  // namespace

std::string EventRecord(const std::string& event) {
  const std::string length = proto::LittleEndian(static_cast<uint64_t>(event.size()));
  return length + Masked(length) + event + Masked(event);
}

Attempt TensorBoard::Begin(const TrackedRun& run) {
  const std::string directory = directory_ + "/" + run.id;
  if (auto made = MakeDirectory(directory, kOrdinaryDirectory); !made) return Failed(made.error().text);
  auto file = CreateFileAnew(
      fmt::format("{}/events.out.tfevents.{}.fullbore", directory, run.wall_begin_ns / kNsPerSecond),
      kOrdinaryFile);
  if (!file) return Failed(file.error().text);
  file_ = std::move(*file);
  size_ = 0;
  std::string about = "`" + run.command + "`";
  for (const auto& [key, value] : run.tags) about += fmt::format("\n\n{}: {}", key, value);
  return Append(EventRecord(Event(run.wall_begin_ns, 0, FileVersion())) +
                EventRecord(Event(run.wall_begin_ns, 0,
                                  Summary(TextFor("custom_scalars", "custom_scalars__config__", Layout()) +
                                          TextFor("text", "fullbore/run/text_summary", about)))));
}

Attempt TensorBoard::Send(const std::vector<Sample>& samples) {
  std::string records;
  for (const Sample& sample : samples) {
    std::string values;
    for (const Value& value : sample.values) values += Scalar(NameOf(value.key), value.value);
    records += EventRecord(Event(sample.wall_ns, sample.step, Summary(values)));
    last_step_ = sample.step;
  }
  return Append(records);
}

Attempt TensorBoard::End(const TrackedRun& run, const Conclusion& conclusion) {
  const Judgement& judgement = conclusion.judgement;
  if (judgement.verdict.empty()) return {Attempt::End::kDelivered, ""};
  std::string text = judgement.verdict;
  if (!judgement.change.empty())
    text += fmt::format("\n\n`{}` would make it {:.2g} times as fast.", judgement.change, judgement.speedup);
  return Append(EventRecord(
      Event(run.wall_end_ns, last_step_, Summary(TextFor("text", "fullbore/verdict/text_summary", text)))));
}

// What a full disk took only a part of is taken back: a broken record would hide all after it.
Attempt TensorBoard::Append(const std::string& records) {
  const ssize_t wrote = pwrite(file_.get(), records.data(), records.size(), size_);
  if (wrote == static_cast<ssize_t>(records.size())) {
    size_ += wrote;
    return {Attempt::End::kDelivered, ""};
  }
  const int error = wrote < 0 ? errno : ENOSPC;
  (void)!ftruncate(file_.get(), size_);
  return Failed(std::strerror(error));
}

}  // namespace fullbore::watch
