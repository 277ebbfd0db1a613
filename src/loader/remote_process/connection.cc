#include "loader/remote_process/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/exec.h"

namespace fullbore::loader {
namespace {

using std::chrono::milliseconds;

// After its socket closes, an interpreter takes tens of milliseconds to end; a server that is stuck in a read
// of stalled storage is killed.
constexpr milliseconds kEndPatience{1000};

class SpawnSettings {
 public:
  explicit SpawnSettings(int kept_fd) {
    posix_spawn_file_actions_init(&actions_);
    // Onto itself: that clears close-on-exec (glibc 2.29, POSIX 2024).
    posix_spawn_file_actions_adddup2(&actions_, kept_fd, kept_fd);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    // Ctrl-C goes to every process of the terminal's group, but this one's parent ends it.
    posix_spawnattr_init(&attributes_);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    posix_spawnattr_setsigmask(&attributes_, &blocked);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<std::shared_ptr<Mapping>> Mapping::Map(int fd, size_t bytes) {
  // Writable, as tensors are.
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return ErrnoError("cannot map a batch of the loader's process", errno);
  return std::make_shared<Mapping>(data, bytes);
}

Mapping::~Mapping() { munmap(data_, bytes_); }

// What the owner of a batch keeps alive.
struct Connection::HeldBatch {
  std::shared_ptr<Connection> connection;
  uint64_t token = 0;
  std::vector<std::shared_ptr<Mapping>> mappings;
  std::string items;
  ~HeldBatch() { connection->Release(token); }
};

Connection::Connection(FrameSocket socket, pid_t pid)
    : socket_(std::move(socket)), pid_(pid), owner_(getpid()) {}

Connection::~Connection() { (void)End(); }

Result<std::shared_ptr<Connection>> Connection::Start(const ProcessOptions& process) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoError("cannot make a socket for the loader's process", errno);
  UniqueFd ours(ends[0]), theirs(ends[1]);
  std::vector<std::string> arguments = process.command;
  arguments.push_back(std::to_string(theirs.get()));
  std::vector<std::string> environment = EnvironmentWith(process.environment);
  const SpawnSettings settings(theirs.get());
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, arguments[0].c_str(), settings.actions(), settings.attributes(),
                                  Pointers(arguments).data(), Pointers(environment).data());
  if (failed != 0)
    return ErrnoError(fmt::format("cannot start the loader's process '{}'", arguments[0]), failed);
  return std::make_shared<Connection>(FrameSocket(std::move(ours)), pid);
}

Result<void> Connection::Ask(FrameKind kind, const nlohmann::json& about, std::string_view bytes) {
  std::lock_guard lock(send_mutex_);
  return socket_.Send(kind, about, bytes);
}

void Connection::Release(uint64_t token) {
  if (getpid() != owner_) return;
  std::lock_guard lock(send_mutex_);
  (void)socket_.SendWithoutWaiting(FrameKind::kRelease,
                                   {{"token", token}});  // a process that is gone holds nothing
}

Result<Batch> Connection::ToBatch(Frame frame) {
  const nlohmann::json& about = frame.about;
  for (const nlohmann::json& number : about.at("freed")) mappings_.erase(number.get<uint64_t>());
  for (size_t i = 0; i < about.at("new_blocks").size(); ++i) {
    const nlohmann::json& block = about["new_blocks"][i];
    auto mapping = Mapping::Map(frame.fds.at(i).get(), block[1]);
    if (!mapping) return mapping.error();
    mappings_[block[0]] = *mapping;
  }
  auto held = std::make_shared<HeldBatch>();
  held->connection = shared_from_this();
  held->token = about.at("token");
  held->items = std::move(frame.bytes);

  Batch batch;
  batch.rows = about.at("rows");
  batch.epoch = about.at("epoch");
  batch.index = about.at("index");
  const auto rows = static_cast<size_t>(batch.rows);
  const char* bytes = held->items.data();
  batch.sample_ids.resize(rows);
  batch.valid.resize(rows);
  std::memcpy(batch.sample_ids.data(), bytes, rows * sizeof(uint64_t));
  std::memcpy(batch.valid.data(), bytes + rows * sizeof(uint64_t), rows);
  bytes += rows * (sizeof(uint64_t) + 1);
  for (const nlohmann::json& said : about.at("fields")) {
    BatchField& field = batch.fields.emplace_back();
    field.name = said.at("name");
    field.kind = static_cast<FieldKind>(said.at("kind").get<int>());
    field.dtype = *DTypeNamed(said.at("dtype").get<std::string>());
    field.shape = said.at("shape").get<std::vector<int64_t>>();
    if (said.contains("block")) {
      const auto& mapping = held->mappings.emplace_back(mappings_.at(said["block"]));
      field.data = mapping->at(said.at("offset"));
    }
    for (const nlohmann::json& length : said.at("lengths")) {
      field.items.emplace_back(bytes, length.get<size_t>());
      bytes += length.get<size_t>();
    }
  }
  batch.owner = std::move(held);
  return batch;
}

void Connection::Shutdown() {
  if (getpid() == owner_) socket_.Shutdown();  // a forked child's descriptor is the parent's socket
}

std::string Connection::End() {
  if (ended_ || getpid() != owner_) return "";
  ended_ = true;
  socket_.Shutdown();
  int status = 0;
  const auto patience_ends = std::chrono::steady_clock::now() + kEndPatience;
  for (;;) {
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) break;
    if (ended < 0 && errno != EINTR) return "it ended";  // another part of the program has waited for it
    if (std::chrono::steady_clock::now() >= patience_ends) (void)kill(pid_, SIGKILL);
    std::this_thread::sleep_for(milliseconds(2));
  }
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace fullbore::loader
