#include "measure/collect/allocator_meter.h"

#include <gtest/gtest.h>

#include <map>

#include "base/testing/scratch_directory.h"
#include "record/run_reader.h"

namespace fullbore::collect {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

record::ChannelRecord Event(int64_t t_ns, int64_t allocated, int64_t reserved, int64_t peak,
                            int64_t retries) {
  record::ChannelRecord event{};
  event.kind = static_cast<uint16_t>(record::EventKind::kMemory);
  event.begin_ns = event.end_ns = t_ns;
  event.a = allocated;
  event.b = reserved;
  event.c = peak;
  event.d = retries;
  return event;
}

TEST(AllocatorMeterTest, EachEventIsAReadingOfEachSeries) {
  const ScratchDirectory directory;
  const std::string path = directory / "run.fbr";
  auto writer = record::RunWriter::Open(path, {"run", "train", {"x"}, "", {}}, 0, 0);
  ASSERT_TRUE(writer.ok());
  AllocatorMeter meter;
  meter.OnEvent(Event(1 * kSecond, 3 << 20, 20 << 20, 5 << 20, 0));
  meter.OnEvent(Event(2 * kSecond, 4 << 20, 40 << 20, 6 << 20, 2));
  meter.Drain(3, *writer);
  meter.Drain(3, *writer);  // once only
  ASSERT_TRUE(writer->Close(10 * kSecond, record::StageState::kEnded, 0, false).ok());
  const auto run = record::ReadRun(path);
  ASSERT_TRUE(run.ok());
  std::map<std::string, double> last;
  for (const record::Series& series : run->stages.at(0).series) {
    EXPECT_EQ(series.key.labels, (record::Labels{{"rank", "3"}}));
    EXPECT_EQ(series.readings.size(), 2u) << series.key.name;
    last[series.key.name] = series.readings.back().value;
  }
  EXPECT_EQ(last, (std::map<std::string, double>{{"torch_allocated", 4 << 20},
                                                 {"torch_reserved", 40 << 20},
                                                 {"torch_allocated_peak", 6 << 20},
                                                 {"torch_retries", 2}}));
}

}  // namespace
}  // namespace fullbore::collect
