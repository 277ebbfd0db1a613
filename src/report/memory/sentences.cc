#include "report/memory/sentences.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace fullbore::report {

namespace {

using memory::DeviceAccount;

// What expandable segments have to save of what is reserved before they are worth a word: a choice, not a
// measurement.
constexpr double kLeastSaved = 0.05;

std::string Bytes(int64_t bytes) { return FormatBytes(static_cast<double>(bytes)); }
std::string Count(int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", FormatCount(static_cast<double>(count)), count == 1 ? one : many);
}
std::string Share(int64_t part, int64_t whole) {
  return FormatPercent(static_cast<double>(part) / static_cast<double>(std::max<int64_t>(whole, 1)));
}

const memory::WhatIf* Expandable(const DeviceAccount& account) {
  const auto found =
      std::find_if(account.what_if.begin(), account.what_if.end(),
                   [](const memory::WhatIf& each) { return each.name == "expandable_segments"; });
  return found == account.what_if.end() ? nullptr : &*found;
}

std::string Refused(const DeviceAccount& account) {
  const memory::RefusedRequest& first = account.refused.front();
  std::string text =
      fmt::format("Out of memory: {} asked for {}, the device had {} left",
                  first.place.empty() ? "code without a line of Python, as in a backward pass," : first.place,
                  Bytes(first.asked), Bytes(first.device_free));
  if (first.cached.pieces > 0)
    text += fmt::format(", and of the {} that the allocator held {} were free in {}, the largest of {}",
                        Bytes(first.moment.reserved), Bytes(first.cached.bytes),
                        Count(first.cached.pieces, "piece", "pieces"), Bytes(first.cached.largest));
  text += ".";
  const memory::WhatIf* expandable = Expandable(account);
  if (expandable == nullptr || !account.capacity) return text;
  const char* setting = " With PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True this request would";
  return text + (expandable->reserved_at_refusal
                     ? fmt::format("{} have fitted: {} reserved at most until then.", setting,
                                   Bytes(*expandable->reserved_at_refusal))
                     : fmt::format("{} not have fitted either.", setting));
}

std::string Fragmentation(const DeviceAccount& account) {
  const memory::WhatIf* expandable = Expandable(account);
  if (expandable == nullptr || expandable->replayed.failed) return "";
  const int64_t before = account.as_recorded->peak_reserved;
  const int64_t saved = before - expandable->replayed.peak_reserved;
  if (static_cast<double>(saved) < kLeastSaved * static_cast<double>(before)) return "";
  return fmt::format(
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True would reserve {} at most instead of {}: {} less.",
      Bytes(expandable->replayed.peak_reserved), Bytes(before), Bytes(saved));
}

std::string Retries(const DeviceAccount& account) {
  if (account.retries == 0) return "";
  return fmt::format(
      "The driver had no more memory {}, and all that was cached went back to it: each time the device "
      "waits for that.",
      Count(account.retries, "time", "times"));
}

std::string Growing(const DeviceAccount& account) {
  if (account.growing.empty()) return "";
  const memory::Growth& most = account.growing.front();
  return fmt::format("{} is asked for again and again by {} and never given back: {} so far.",
                     Bytes(most.bytes), most.place.empty() ? "code without a line" : most.place,
                     Count(most.blocks, "block", "blocks"));
}

std::string Fullest(const DeviceAccount& account) {
  const memory::Moment& moment = account.peak.moment;
  std::string text = fmt::format("{} were in use {}", Bytes(moment.allocated),
                                 account.as_recorded ? "at most" : "at the end");
  if (!account.peak.lines.empty() && !account.peak.lines.front().place.empty()) {
    const memory::LineUse& most = account.peak.lines.front();
    text += fmt::format(", {} of it asked for by {}", Share(most.bytes, moment.allocated), most.place);
  }
  return text + fmt::format("; {} were reserved.", Bytes(account.peak_reserved));
}

}  // namespace

std::vector<std::string> MemorySentences(const DeviceAccount& account) {
  std::vector<std::string> sentences;
  if (!account.refused.empty()) sentences.push_back(Refused(account));
  if (account.refused.empty()) sentences.push_back(Fragmentation(account));
  sentences.push_back(Growing(account));
  sentences.push_back(Retries(account));
  sentences.push_back(Fullest(account));
  std::erase(sentences, "");
  return sentences;
}

std::vector<std::string> MemoryLimits(const DeviceAccount& account) {
  std::vector<std::string> limits;
  if (account.events == 0) {
    limits.push_back(
        "No events were recorded, so only what stood at the end is known: call "
        "torch.cuda.memory._record_memory_history() before the first allocation.");
    return limits;
  }
  if (!account.complete)
    limits.push_back(fmt::format(
        "The record begins when {} stood already: what made them is not known, so nothing is said about other settings.",
        Bytes(account.earlier_bytes)));
  if (!account.as_recorded || !account.complete) return limits;
  if (account.collects_garbage)
    limits.push_back(
        "garbage_collection_threshold is set, and what it would give back under other settings is not replayed: nothing "
        "is said about them.");
  else if (!CanJudge(account))
    limits.push_back(fmt::format(
        "A replay of the allocator differs from the record by up to {}, so nothing is said about other "
        "settings. It replays neither pools of graphs or of the user's, nor all that follows a refused "
        "request.",
        Bytes(account.as_recorded->off)));
  else if (account.as_recorded->off > 0)
    limits.push_back(fmt::format("A replay of the allocator differs from the record by up to {}.",
                                 Bytes(account.as_recorded->off)));
  return limits;
}

std::string WhatIfText(const memory::WhatIf& what_if, const DeviceAccount& account) {
  const memory::Replayed& replayed = what_if.replayed;
  if (replayed.failed)
    return fmt::format("does not fit into {}", Bytes(account.capacity.value_or(replayed.peak_reserved)));
  const int64_t more = replayed.peak_reserved - account.as_recorded->peak_reserved;
  const std::string difference =
      more == 0 ? "as it was" : Bytes(std::abs(more)) + (more > 0 ? " more" : " less");
  return fmt::format("{} reserved at most, {}; {} in use", Bytes(replayed.peak_reserved), difference,
                     Bytes(replayed.peak_allocated));
}

std::string TimeText(const memory::Moment& moment) {
  return moment.time_us ? FormatDuration(*moment.time_us * 1000) : "";
}

}  // namespace fullbore::report
