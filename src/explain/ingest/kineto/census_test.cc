#include "explain/ingest/kineto/census.h"

#include <gmock/gmock.h>

#include "explain/ingest/kineto/kineto_reader.h"
#include "explain/ingest/testing/trace_builder.h"

namespace fullbore::ingest::kineto {
namespace {

using ::testing::HasSubstr;
using testing::TraceBuilder;

// What the trace holds, or the error that says what it is.
std::string Told(const TraceBuilder& builder) {
  const std::string json = builder.Json();
  const auto trace = ReadKineto(BytesInMemory(json), "t.json");
  if (!trace) return trace.error().text + " | " + trace.error().hint;
  const auto held = trace->facts.find("trace_holds");
  return held == trace->facts.end() ? "steps or a device" : held->second;
}

std::string Process(const std::string& name) {
  return R"({"ph": "M", "pid": 2, "name": "process_name", "args": {"name": ")" + name + "\"}}";
}

std::string Event(const std::string& category) {
  return R"({"ph": "X", "pid": 2, "tid": 7, "ts": 10, "dur": 5, "name": "op", "cat": ")" + category + "\"}";
}

TEST(CensusTest, ATraceWithoutDeviceAndStepsSaysWhatItHolds) {
  EXPECT_EQ(Told(TraceBuilder().Op("aten::mm", 1, 2).Op("aten::mm", 5, 2).Annotation("epoch", 1, 9)),
            "\"2 operators of the CPU, 1 range that the program named\"");
  EXPECT_EQ(
      Told(TraceBuilder().Raw(R"({"ph": "C", "name": "power", "pid": 0, "ts": 1, "args": {"watts": 2}})")),
      "\"1 reading of a counter\"");
  EXPECT_EQ(Told(TraceBuilder().Raw(Event("FEE")).Raw(Event("FEE")).Raw(Event("GC"))),
            "\"3 events of kinds that are not read ('FEE')\"");
}

TEST(CensusTest, NamesAloneAreNothing) {
  EXPECT_EQ(Told(TraceBuilder().Raw(Process("python"))), "\"\"");
  EXPECT_EQ(Told(TraceBuilder().Raw(Event("Trace"))), "\"\"") << "the profiler's own";
  EXPECT_EQ(Told(TraceBuilder()), "\"\"");
}

TEST(CensusTest, WithADeviceOrStepsNothingIsSaid) {
  EXPECT_EQ(Told(TraceBuilder().Kernel("k", 1, 2, 1)), "steps or a device");
  EXPECT_EQ(Told(TraceBuilder().Op("aten::mm", 1, 2).Step(0, 0, 10)), "steps or a device");
}

TEST(CensusTest, DevicesThatAreRecordedOtherwiseAreNamed) {
  struct Case {
    std::string event, what;
  };
  for (const auto& [event, what] : std::vector<Case>{
           {Process("Ascend Hardware"), "'t.json' is a trace of torch_npu on an Ascend device"},
           {Process("/device:GPU:0 NVIDIA A100"), "XLA's profiler (JAX or TensorFlow)"},
           {Process("/device:TPU:0"), "on a TPU"},
           {Process("/host:CPU"), "XLA's profiler"},
           {Process("/job:localhost/replica:0/task:0/device:GPU:0/stream:all"), "TensorFlow's profiler"},
           {Process("CPU HIP API"), "rocprof"},
           {Event("mtia_ccp_events"), "an MTIA device"},
           {Event("hpu_op"), "a Gaudi device (HPU)"},
       }) {
    const std::string told = Told(TraceBuilder().Op("aten::mm", 1, 2).Raw(event));
    EXPECT_THAT(told, HasSubstr(what)) << event;
    EXPECT_THAT(told, HasSubstr(", whose operations are not read | ")) << event;
    EXPECT_THAT(told, ::testing::Not(::testing::EndsWith("| "))) << event;
  }
}

TEST(CensusTest, TheirNamesElsewhereMeanNothing) {
  for (const std::string& event :
       {Process("python"), Process("my /device:GPU:0"), Process("2 CPU HIP API"), Event("mtia"),
        std::string(R"({"ph": "X", "cat": "user_annotation", "name": "/device:GPU:0", "ts": 1,)"
                    R"( "dur": 1, "args": {"name": "Ascend Hardware"}})"),
        std::string(R"({"ph": "M", "name": "thread_name", "args": {"name": "/host:CPU"}})")}) {
    EXPECT_THAT(Told(TraceBuilder().Raw(event)), ::testing::Not(HasSubstr("not read |"))) << event;
  }
  EXPECT_EQ(Told(TraceBuilder().Kernel("k", 1, 2, 1).Raw(Process("/host:CPU"))), "steps or a device")
      << "what is read is judged";
}

}  // namespace
}  // namespace fullbore::ingest::kineto
