#include "explain/ingest/kineto/kineto_reader.h"

#include "explain/ingest/kineto/event.h"
#include "explain/ingest/kineto/json_window.h"
#include "explain/ingest/kineto/merged_ranks.h"
#include "explain/ingest/kineto/trace_properties.h"

namespace fullbore::ingest::kineto {
namespace {

constexpr int64_t kProgressBytes = 8 << 20;  // of the file, between two calls of the progress function

class Reader {
 public:
  Reader(std::unique_ptr<ByteSource> source, const std::string& name, const ReadOptions& options)
      : window_(std::move(source)), name_(name), options_(options), ranks_(&trace_, options.stacks) {}

  Result<timeline::DeviceTrace> Read() {
    window_.SkipByteOrderMark();
    const char first = window_.Peek();
    if (first == '{') {
      ReadObject();
    } else if (first == '[') {
      ReadEvents();
    } else if (window_.error() != nullptr) {
      return Error{window_.error()->code, "cannot read '" + name_ + "': " + window_.error()->text,
                   window_.error()->hint};
    } else {
      return NotATrace(first == '\0' ? "it is empty" : "it begins with neither '{' nor '[' at byte 0");
    }
    const bool broken_off = trace_.noticed.breaks_off_at.has_value();
    if (trace_.events == 0 && broken_off) return NotATrace(BrokenOffWhere());
    if (!found_events_) return NotATrace("it has no \"traceEvents\"");
    if (broken_off) {
      trace_.notes.push_back("'" + name_ + "' breaks off: " + BrokenOffWhere() + "; the " +
                             std::to_string(trace_.events) + " events before are judged");
    }
    ranks_.Finish();
    if (auto foreign = ranks_.census().Foreign(name_); foreign && !trace_.has_device_activity())
      return *foreign;
    return std::move(trace_);
  }

 private:
  Error NotATrace(const std::string& why) const {
    return {ErrorCode::kCorrupt, "'" + name_ + "' is not a PyTorch-profiler trace: " + why,
            "a trace is what torch.profiler's export_chrome_trace or tensorboard_trace_handler writes"};
  }

  std::string BrokenOffWhere() const {
    if (window_.error() != nullptr) return window_.error()->text;
    return "the JSON text ends or is damaged at byte " + std::to_string(*trace_.noticed.breaks_off_at);
  }

  // Where the cursor stands, or where the text ends if it does so before it should.
  void BreakOff(bool ended = false) {
    trace_.noticed.breaks_off_at = ended || window_.Peek() == '\0' ? window_.end_offset() : window_.offset();
  }

  void ReadObject() {
    window_.MoveTo(window_.cursor() + 1);
    for (;;) {
      char next = window_.Peek();
      if (next == ',') {
        window_.MoveTo(window_.cursor() + 1);
        continue;
      }
      if (next == '}') return;
      if (next != '"') return BreakOff();
      const std::string_view quoted = window_.TakeValue();
      if (quoted.size() < 2) return BreakOff();
      const std::string key(quoted.substr(1, quoted.size() - 2));
      if (window_.Peek() != ':') return BreakOff();
      window_.MoveTo(window_.cursor() + 1);
      next = window_.Peek();
      if (key == "traceEvents" && next == '[') {
        ReadEvents();
        if (trace_.noticed.breaks_off_at) return;
      } else if (WantsProperty(key)) {
        std::string_view value = window_.TakeValue();
        if (value.empty()) return BreakOff();
        if (value.size() >= 2 && value[0] == '"') value = value.substr(1, value.size() - 2);
        TakeProperty(key, value, trace_);
      } else if (!window_.SkipAny()) {
        return BreakOff();
      }
    }
  }

  // The hot loop: events are parsed where they lie in the window; only when one reaches past its end does the
  // window move.
  void ReadEvents() {
    found_events_ = true;
    RawEvent event;
    const char* p = window_.cursor() + 1;
    for (;;) {
      p = SkipBlanks(p);
      if (*p == ',') {
        ++p;
        continue;
      }
      if (*p == ']') return window_.MoveTo(p + 1);
      const char* after = nullptr;
      Parse parsed = *p == '{' ? ParseEvent(p + 1, window_.end(), &event, &after) : Parse::kBroken;
      if (SwallowsOthers(p, parsed == Parse::kOk ? after : window_.end())) parsed = Parse::kBroken;
      if (parsed == Parse::kOk) {
        ranks_.Take(event);
        p = after;
        continue;
      }
      window_.MoveTo(p);
      if (parsed == Parse::kBroken && p < window_.end()) {
        if (!ReadDamaged(&event)) return BreakOff();
      } else if (!NextStretch() && (FindNextEvent(p, window_.end()) == nullptr || !ReadDamaged(&event))) {
        return BreakOff(true);
      }
      p = window_.cursor();
    }
  }

  // A quote or a backslash that is not escaped turns strings inside out, and braces in them are no longer seen.
  static bool SwallowsOthers(const char* event, const char* end) {
    constexpr ptrdiff_t kOne = 256;  // bytes: two events are larger
    return end - event > kOne && *event == '{' && FindNextEvent(event + 1, end) != nullptr;
  }

  bool NextStretch() {
    if (window_.Grow()) {
      ReportProgress();
      return true;
    }
    if (window_.at_end() || window_.error() != nullptr || window_.Peek() == '\0') return false;
    LeaveOut("events larger than 64 MB");
    return window_.SkipAny();
  }

  // Something at the cursor that is no event, or one whose strings are not escaped. False if what follows cannot be
  // read either; the cursor stands where the damage begins then.
  bool ReadDamaged(RawEvent* event) {
    constexpr ptrdiff_t kFar = 4 << 20;  // bytes: the next event begins before
    const bool object = *window_.cursor() == '{';
    if (!object && SkipBroken()) return true;
    const char* next = FindNextEvent(window_.cursor(), window_.end());
    while (next == nullptr && window_.end() - window_.cursor() < kFar && window_.Grow())
      next = FindNextEvent(window_.cursor(), window_.end());
    const char* after = nullptr;
    if (object && ParseDamagedEvent(window_.cursor() + 1, window_.end(), event, &after) == Parse::kOk &&
        event->phase != 0 && !event->name.empty() && (next == nullptr || after <= next)) {
      ranks_.Take(*event);
      window_.MoveTo(after);
      return true;
    }
    if (next == nullptr) return object && SkipBroken();
    LeaveOut("unreadable events");
    window_.MoveTo(next);
    return true;
  }

  // Not an event: one value is skipped, if it has an end.
  bool SkipBroken() {
    const int64_t before = window_.offset();
    const std::string_view skipped = window_.TakeValue();
    if (skipped.empty() || window_.offset() == before) return false;
    LeaveOut("unreadable events");
    return true;
  }

  void LeaveOut(const char* what) {
    ++trace_.left_out[what];
    ++trace_.noticed.left_out;
  }

  void ReportProgress() {
    const int64_t position = window_.source().file_position();
    if (!options_.progress || position - reported_ < kProgressBytes) return;
    reported_ = position;
    options_.progress(position, window_.source().file_size());
  }

  JsonWindow window_;
  const std::string name_;
  const ReadOptions& options_;
  timeline::DeviceTrace trace_;
  MergedRanks ranks_;
  bool found_events_ = false;
  int64_t reported_ = 0;
};

}  // namespace

Result<timeline::DeviceTrace> ReadKineto(std::unique_ptr<ByteSource> source, const std::string& name,
                                         const ReadOptions& options) {
  return Reader(std::move(source), name, options).Read();
}

}  // namespace fullbore::ingest::kineto
