#include "explain/ingest/kineto/paired_events.h"

#include <fmt/format.h>

#include "explain/ingest/kineto/json_window.h"

namespace fullbore::ingest::kineto {
namespace {

constexpr size_t kMaxOpen = size_t{64} * 1024;
constexpr size_t kMaxArgs = 4096;  // bytes that are kept of an event

std::string_view WithoutPadding(const std::string& padded) {
  return std::string_view(padded).substr(0, padded.size() - kPadding);
}

}  // namespace

void PairedEvents::Begin(const RawEvent& event) {
  const auto begin = NanosecondsOfMicros(event.ts);
  if (!begin || number_open_ >= kMaxOpen) {
    ++left_out_;
    return;
  }
  ++number_open_;
  key_.assign(event.pid).append("/").append(event.tid);
  open_[key_].push_back({std::string(event.category), std::string(event.name), std::string(event.pid),
                         std::string(event.tid),
                         std::string(event.args.substr(0, kMaxArgs)).append(kPadding, '\0'),
                         std::string(event.ts), "", *begin});
}

std::optional<RawEvent> PairedEvents::End(const RawEvent& event) {
  key_.assign(event.pid).append("/").append(event.tid);
  const auto open = open_.find(key_);
  if (open == open_.end()) {
    ++left_out_;
    return std::nullopt;
  }
  closed_ = std::move(open->second.back());
  open->second.pop_back();
  if (open->second.empty()) open_.erase(open);
  --number_open_;
  const auto end = NanosecondsOfMicros(event.ts);
  const bool other = !event.name.empty() && event.name != closed_.name;  // one of the two is missing
  if (!end || *end < closed_.begin_ns || other) {
    ++left_out_;
    return std::nullopt;
  }
  const int64_t duration = *end - closed_.begin_ns;
  closed_.duration = fmt::format("{}.{:03}", duration / 1000, duration % 1000);
  return RawEvent{'X',         closed_.category, closed_.name,     closed_.pid,
                  closed_.tid, closed_.begin,    closed_.duration, WithoutPadding(closed_.args)};
}

int64_t PairedEvents::LeftOut() const { return left_out_ + static_cast<int64_t>(number_open_); }

}  // namespace fullbore::ingest::kineto
