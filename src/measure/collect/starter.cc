#include "measure/collect/starter.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"

namespace fullbore::collect {

namespace {

constexpr size_t kMostBytes = 64 << 10;  // of a packet: the plugin sends no longer ones
constexpr int64_t kMostTasks = 1 << 20;

Error NoWord(const std::string& of) {
  return {ErrorCode::kUnavailable, "whoever starts the command said nothing of " + of, ""};
}

// As a shell shows it: a signal is worse than any status.
int BadnessOf(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace

std::string PacketOf(const std::vector<std::string>& texts) {
  std::string packet;
  for (const std::string& text : texts) packet.append(text.c_str()).push_back('\0');
  return packet;
}

std::vector<std::string> TextsOf(std::string_view packet) {
  std::vector<std::string> texts;
  for (size_t end = 0; (end = packet.find('\0')) != std::string_view::npos; packet.remove_prefix(end + 1))
    texts.emplace_back(packet.substr(0, end));
  return texts;
}

std::optional<Starter::Texts> Starter::Receive(bool wait) {
  std::string packet(kMostBytes, '\0');
  while (!gone_) {
    const ssize_t bytes = recv(socket_.get(), packet.data(), packet.size(), wait ? 0 : MSG_DONTWAIT);
    if (bytes > 0) {
      Texts texts = TextsOf(std::string_view(packet).substr(0, static_cast<size_t>(bytes)));
      if (!texts.empty()) return texts;
    } else if (bytes == 0 || (errno != EINTR && errno != EAGAIN)) {
      gone_ = true;
    } else if (errno == EAGAIN) {
      break;
    }
  }
  return std::nullopt;
}

bool Starter::Send(const Texts& texts) {
  const std::string packet = PacketOf(texts);
  return send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(packet.size());
}

Result<Starter::Beginning> Starter::WaitForBeginning() {
  alarm(0);
  const auto texts = Receive(/*wait=*/true);
  if (!texts || texts->size() < 4 || texts->front() != "begin") return NoWord("what it is");
  running_ = std::clamp<int64_t>(ParseInt((*texts)[1]).value_or(1), 1, kMostTasks);
  return Beginning{running_, (*texts)[2], {texts->begin() + 3, texts->end()}};
}

Result<pid_t> Starter::WaitForTask(const std::map<std::string, std::string>& environment) {
  Texts answer = {"environment"};
  for (const auto& [name, value] : environment) answer.push_back(fmt::format("{}={}", name, value));
  if (!Send(answer)) return NoWord("its tasks: it would not wait");
  while (const auto texts = Receive(/*wait=*/true)) {
    if (texts->front() == "exit") TakeExit(*texts);
    if (texts->front() != "task" || texts->size() < 2) continue;
    for (const std::string& text : *texts) {
      if (const size_t at = text.find('='); at != std::string::npos)
        variables_[text.substr(0, at)] = text.substr(at + 1);
    }
    return static_cast<pid_t>(ParseInt((*texts)[1]).value_or(0));
  }
  return NoWord("its tasks: it would not wait");
}

void Starter::Refuse(const std::string& why) { (void)Send({"refused", why}); }

bool Starter::IsOver() {
  while (const auto texts = Receive(/*wait=*/false)) {
    if (texts->front() == "exit") TakeExit(*texts);
  }
  if (running_ <= 0) status_ = worst_;
  return gone_ || running_ <= 0;
}

void Starter::TakeExit(const Texts& texts) {
  const auto status = texts.size() > 1 ? ParseInt(texts[1]) : std::nullopt;
  if (!status) return;
  --running_;
  const int ended = static_cast<int>(*status);
  if (!worst_ || BadnessOf(ended) > BadnessOf(*worst_)) worst_ = ended;
}

const char* Starter::Variable(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : found->second.c_str();
}

}  // namespace fullbore::collect
