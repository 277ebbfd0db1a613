// Takes the events of a rank one by one and puts what they mean into a DeviceTrace.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "explain/ingest/kineto/census.h"
#include "explain/ingest/kineto/event.h"
#include "explain/ingest/kineto/operator_args.h"
#include "explain/ingest/kineto/paired_events.h"
#include "explain/ingest/kineto/recomputed.h"
#include "explain/ingest/span_names.h"
#include "timeline/device/trace.h"

namespace fullbore::ingest::kineto {

class EventSorter {
 public:
  EventSorter(timeline::DeviceTrace* trace, bool stacks);

  void Take(const RawEvent& event);
  void Finish();  // after the last event; finishes the trace

  const Census& census() const { return census_; }

 private:
  struct Times {
    int64_t begin_ns;
    int64_t end_ns;
  };

  void TakeComplete(const RawEvent& event);
  void TakeEnd(const RawEvent& event);
  void TakeDeviceOp(const RawEvent& event, const Times& times, bool kernel);
  void TakeCall(const RawEvent& event, const Times& times);
  void TakeOperator(const RawEvent& event, const Times& times, bool annotation);
  void TakeShapes(const RawEvent& event, const Times& times);
  void TakeLoaderFacts(const RawEvent& event);
  void TakePython(const RawEvent& event, const Times& times);
  void TakeStepMark(const RawEvent& event, const Times& times, std::string_view number);
  void TakeCollectiveCall(const RawEvent& event, const Times& times);
  void TakeEventCall(const RawEvent& event, const Times& times);
  void TakeSync(const RawEvent& event, const Times& times);
  void TakeMemory(const RawEvent& event);
  void TakeCounter(const RawEvent& event);
  void TakeKernelCounters(const RawEvent& event, const Times& times);

  std::optional<Times> TimesOf(const RawEvent& event, bool device);
  timeline::NameId NameOf(std::string_view raw);
  uint16_t ThreadOf(const RawEvent& event);
  uint16_t StreamOf(std::string_view device, std::string_view stream);
  void AddSpan(const RawEvent& event, const Times& times, timeline::SpanKind kind);
  void NoteInner(int64_t begin_ns, timeline::HostSpan& outer);
  void AddReading(const std::string& counter, int64_t t_ns, double value);

  timeline::DeviceTrace* const trace_;
  const bool stacks_;
  std::unordered_map<std::string, uint16_t> threads_;
  std::unordered_map<std::string, uint16_t> streams_;
  std::string last_thread_;  // most events are of the same thread as the one before
  uint16_t last_thread_index_ = 0;
  uint32_t counted_kernels_ = 0;
  OperatorReader operators_;
  Recomputed recomputed_;
  std::vector<int64_t> operator_starts_ns_;
  NamedSteps named_steps_;
  PairedEvents paired_;
  Census census_;
  std::string key_;  // scratch
};

}  // namespace fullbore::ingest::kineto
