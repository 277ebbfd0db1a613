#include "loader/core/source/remote/message_log.h"

#include <utility>

namespace fullbore::loader::remote {
namespace {

// Often enough to show that the trouble lasts, rarely enough that an hour of it is 120 lines.
constexpr int64_t kBetweenTroublesNs = 30 * kNsPerSecond;
constexpr size_t kMaxMessages = 100;  // if nobody takes them

}  // namespace

void MessageLog::Once(const std::string& topic, Message::Severity severity, std::string text) {
  std::lock_guard lock(mutex_);
  if (said_.insert(topic).second) Add(severity, std::move(text));
}

void MessageLog::Trouble(const std::string& text) {
  std::lock_guard lock(mutex_);
  const int64_t now = clock_ns_();
  if (ever_trouble_ && now - last_trouble_ns_ < kBetweenTroublesNs) {
    ++left_out_;
    return;
  }
  const std::string others =
      left_out_ == 0 ? "" : " (" + std::to_string(left_out_) + " more like this since the last message)";
  Add(Message::Severity::kWarning, text + others);
  ever_trouble_ = in_trouble_ = true;
  left_out_ = 0;
  last_trouble_ns_ = now;
}

void MessageLog::Recovered(const std::string& text) {
  std::lock_guard lock(mutex_);
  if (!std::exchange(in_trouble_, false)) return;
  Add(Message::Severity::kInfo, text);
}

std::vector<Message> MessageLog::Take() {
  std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

void MessageLog::Add(Message::Severity severity, std::string text) {
  if (messages_.size() < kMaxMessages) messages_.push_back({severity, std::move(text)});
}

}  // namespace fullbore::loader::remote
