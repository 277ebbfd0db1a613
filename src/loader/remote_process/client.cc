#include "loader/remote_process/client.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <variant>

#include "loader/core/options_json.h"
#include "loader/remote_process/connection.h"

namespace fullbore::loader {

using nlohmann::json;
using std::chrono::milliseconds;

namespace {
constexpr milliseconds kForever{-1};
constexpr milliseconds kLongPatience{100};  // of one request in a Next without a limit
}  // namespace

class RemoteLoader::Client {
 public:
  Client(const LoaderOptions& options, ProcessOptions process)
      : options_json_(OptionsToJson(options)), process_(std::move(process)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    if (connection_) (void)connection_->End();  // batches in use keep the memory, not the process
  }

  // From the last response of the server; read by any thread.
  struct Known {
    LoaderState state;
    LoaderStats stats;
    std::vector<Message> messages;
    std::vector<BadSample> bad_samples;
  };

  Result<void> Start() {
    auto connection = Connection::Start(process_);
    if (!connection) return connection.error();
    {
      std::lock_guard lock(mutex_);
      connection_ = *connection;
      if (stopped_) connection_->Shutdown();  // Stop had the previous connection
    }
    pid_ = connection_->pid();
    if (auto asked = connection_->Ask(FrameKind::kOpen, {{"options", options_json_}}, process_.user_stage);
        !asked)
      return asked;
    auto frame = Settled();
    if (!frame) return frame.error();
    if (restarts_ > 0)
      return {};  // other threads read what follows; a restart finds the same, or fails to restore
    samples_ = frame->about.at("samples");
    batches_per_epoch_ = frame->about.at("batches_per_epoch");
    class_names_ = frame->about.at("class_names").get<std::vector<std::string>>();
    return {};
  }

  struct NotYet {};
  using Answered = std::variant<NotYet, std::optional<Batch>>;

  Result<Answered> Next(milliseconds patience) {
    if (stopped_) return Stopped();
    if (!waiting_) {
      if (auto asked = AskNext(patience); !asked) return asked.error();
    }
    auto received = connection_->Answer(patience);
    if (stopped_) return Stopped();
    if (!received) {
      waiting_ = false;
      if (auto restarted = RestartAt(State()); !restarted) return restarted.error();
      return Answered(NotYet{});
    }
    if (!*received) return Answered(NotYet{});
    waiting_ = false;
    Frame frame = std::move(**received);
    Note(frame);
    if (frame.kind == FrameKind::kEnd) return Answered(std::optional<Batch>());
    if (frame.kind == FrameKind::kNotYet) return Answered(NotYet{});
    if (frame.kind == FrameKind::kFailed) return ErrorFromJson(frame.about.at("error"));
    auto batch = connection_->ToBatch(std::move(frame));
    if (!batch) return batch.error();
    return Answered(std::optional<Batch>(std::move(*batch)));
  }

  // A pending response belongs to the old position: waits for it and drops it.
  Result<void> Command(FrameKind kind, const json& about, const LoaderState& wanted) {
    for (int attempt = 0;; ++attempt) {
      auto asked = Drain();
      if (asked) asked = connection_->Ask(kind, about);
      if (asked) {
        auto frame = Settled();
        if (frame) return {};
        asked = frame.error();
      }
      if (asked.error().code != ErrorCode::kUnavailable || attempt > process_.max_restarts) return asked;
      if (auto restarted = RestartAt(wanted); !restarted) return restarted;
    }
  }

  void Stop() {
    stopped_ = true;
    std::lock_guard lock(mutex_);
    connection_->Shutdown();
  }

  LoaderState State() const {
    std::lock_guard lock(mutex_);
    return known_.state;
  }
  template <typename F>
  auto WithKnown(F use) {
    std::lock_guard lock(mutex_);
    return use(known_);
  }

  // Constant after the first start.
  uint64_t samples_ = 0, batches_per_epoch_ = 0;
  std::vector<std::string> class_names_;
  std::atomic<pid_t> pid_{0};

 private:
  static Error Stopped() { return {ErrorCode::kUnavailable, "the loader was stopped", ""}; }

  Result<void> AskNext(milliseconds patience) {
    const json about = {{"patience_ms", patience.count()}};
    auto asked = connection_->Ask(FrameKind::kNext, about);
    if (!asked) {
      if (auto restarted = RestartAt(State()); !restarted) return restarted;
      asked = connection_->Ask(FrameKind::kNext, about);
    }
    waiting_ = static_cast<bool>(asked);
    return asked;
  }

  Result<void> Drain() {
    while (waiting_) {
      auto frame = connection_->Answer(kForever);
      waiting_ = frame && !*frame;  // a signal
      if (!frame) return frame.error();
      if (*frame) Note(**frame);
      // A batch that nobody takes goes straight back.
      if (*frame && (*frame)->kind == FrameKind::kBatch) (void)connection_->ToBatch(std::move(**frame));
    }
    return {};
  }

  // The response to a request that has no patience.
  Result<Frame> Settled() {
    for (;;) {
      auto frame = connection_->Answer(kForever);
      if (!frame) return frame.error();
      if (!*frame) continue;  // a signal
      Note(**frame);
      if ((*frame)->kind == FrameKind::kFailed) return ErrorFromJson((*frame)->about.at("error"));
      return std::move(**frame);
    }
  }

  Result<void> RestartAt(const LoaderState& position) {
    const std::string how = connection_->End();
    if (stopped_) return Stopped();
    if (restarts_ >= process_.max_restarts) {
      return Error{
          ErrorCode::kInternal,
          fmt::format("the loader's process was restarted {} times, and is gone again: {}", restarts_, how),
          "find out what ends it (dmesg shows when the kernel ran out of memory), or run the "
          "loader in this process"};
    }
    ++restarts_;
    waiting_ = false;
    AddMessage(fmt::format("the loader's process {} was {}; restarted at epoch {}, sample {} ({} of {})",
                           pid_.load(), how, position.epoch, position.consumed, restarts_,
                           process_.max_restarts));
    if (auto started = Start(); !started) return started;
    if (auto asked = connection_->Ask(FrameKind::kRestore, {{"state", position.ToJson()}}); !asked)
      return asked;
    auto frame = Settled();
    if (!frame) return frame.error();
    return {};
  }

  void AddMessage(std::string text) {
    std::lock_guard lock(mutex_);
    known_.messages.push_back({Message::Severity::kWarning, std::move(text)});
  }

  void Note(const Frame& frame) {
    const json& about = frame.about;
    if (!about.contains("state")) return;
    std::lock_guard lock(mutex_);
    if (auto state = LoaderState::FromJson(about["state"].get<std::string>())) known_.state = *state;
    known_.stats = StatsFromJson(about.at("stats"));
    for (const json& message : about.at("messages"))
      known_.messages.push_back({static_cast<Message::Severity>(message[0].get<int>()), message[1]});
    if (!about.contains("bad_samples")) return;
    for (const json& bad : about["bad_samples"])
      known_.bad_samples.push_back({bad[0], bad[1], bad[2], ErrorFromJson(bad[3])});
  }

  const std::string options_json_;
  const ProcessOptions process_;
  std::atomic<bool> stopped_{false};
  bool waiting_ = false;  // a kNext has no response yet
  int restarts_ = 0;

  mutable std::mutex mutex_;
  std::shared_ptr<Connection> connection_;  // replaced under mutex_, for Stop
  Known known_;                             // protected by mutex_
};

RemoteLoader::RemoteLoader(std::shared_ptr<Client> client) : client_(std::move(client)) {}
RemoteLoader::RemoteLoader(RemoteLoader&&) noexcept = default;
RemoteLoader& RemoteLoader::operator=(RemoteLoader&&) noexcept = default;
RemoteLoader::~RemoteLoader() {
  if (client_) client_->Stop();
}

Result<RemoteLoader> RemoteLoader::Open(const LoaderOptions& options, const ProcessOptions& process) {
  auto client = std::make_shared<Client>(options, process);
  if (auto started = client->Start(); !started) {
    Error error = started.error();
    if (error.code == ErrorCode::kUnavailable && error.hint.empty())
      error.hint = "its own message is on standard error";
    return error;
  }
  return RemoteLoader(std::move(client));
}

Result<std::optional<Batch>> RemoteLoader::Next(milliseconds patience) {
  auto answered = client_->Next(patience);
  if (!answered) return answered.error();
  if (auto* batch = std::get_if<std::optional<Batch>>(&*answered)) return std::move(*batch);
  return Error{ErrorCode::kTimeout, "no batch yet", ""};
}

Result<std::optional<Batch>> RemoteLoader::Next() {
  for (;;) {
    auto answered = client_->Next(kLongPatience);
    if (!answered) return answered.error();
    if (auto* batch = std::get_if<std::optional<Batch>>(&*answered)) return std::move(*batch);
  }
}

void RemoteLoader::SetEpoch(uint64_t epoch) {
  LoaderState wanted = client_->State();
  wanted.epoch = epoch;
  wanted.consumed = 0;
  (void)client_->Command(FrameKind::kSetEpoch, {{"epoch", epoch}}, wanted);  // the next Next says what failed
}

LoaderState RemoteLoader::State() const { return client_->State(); }

Result<void> RemoteLoader::Restore(const LoaderState& state) {
  return client_->Command(FrameKind::kRestore, {{"state", state.ToJson()}}, state);
}

void RemoteLoader::Stop() { client_->Stop(); }
uint64_t RemoteLoader::samples() const { return client_->samples_; }
uint64_t RemoteLoader::batches_per_epoch() const { return client_->batches_per_epoch_; }
const std::vector<std::string>& RemoteLoader::class_names() const { return client_->class_names_; }
pid_t RemoteLoader::pid() const { return client_->pid_; }

LoaderStats RemoteLoader::Stats() const {
  return client_->WithKnown([](auto& known) { return known.stats; });
}
std::vector<Message> RemoteLoader::TakeMessages() {
  return client_->WithKnown([](auto& known) { return std::exchange(known.messages, {}); });
}
std::vector<BadSample> RemoteLoader::bad_samples() const {
  return client_->WithKnown([](auto& known) { return known.bad_samples; });
}

}  // namespace fullbore::loader
