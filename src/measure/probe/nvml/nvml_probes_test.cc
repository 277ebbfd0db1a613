// The real probes against the fake library of tests/fakes/nvml, through dlopen.
#include "measure/probe/nvml/nvml_probes.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/testing/source_directory.h"
#include "measure/probe/testing/fake_machine.h"

namespace fullbore::probe::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NvmlProbesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("FULLBORE_NVML", FULLBORE_FAKE_NVML_LIBRARY, 1);
    // Kept open: an unloaded library would forget the time that the test set.
    fake_ = dlopen(FULLBORE_FAKE_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(fake_, nullptr) << dlerror();
    set_time_ = reinterpret_cast<void (*)(double)>(dlsym(fake_, "fakeNvmlSetTime"));
    ASSERT_NE(set_time_, nullptr);
  }
  void TearDown() override {
    fast_.reset();
    slow_.reset();
    session_.reset();
    dlclose(fake_);
    unsetenv("FULLBORE_NVML");
    unsetenv("FULLBORE_FAKE_NVML");
  }

  void Start(const std::string& script) {
    files_.Write("/script.json", script);
    StartFile(files_.root() + "/script.json");
  }
  void StartFile(const std::string& path) {
    setenv("FULLBORE_FAKE_NVML", path.c_str(), 1);
    session_ = std::make_shared<Session>();
    fast_ = std::make_unique<FastProbe>(session_);
    slow_ = std::make_unique<SlowProbe>(session_, [](int64_t pid) { return pid == 1000; });
  }
  void SampleAt(double seconds) {
    set_time_(seconds);
    fast_->Sample(Seconds(100 + seconds), sink_);
    slow_->Sample(Seconds(100 + seconds), sink_);
  }

  FakeMachine files_;
  FakeSink sink_;
  void* fake_ = nullptr;
  void (*set_time_)(double) = nullptr;
  std::shared_ptr<Session> session_;
  std::unique_ptr<FastProbe> fast_;
  std::unique_ptr<SlowProbe> slow_;
};

constexpr const char* kSteady = R"(, "waves": {"sm_active": [40, 0, 1], "tensor_active": [0.5, 0, 1],
    "utilization": [98, 0, 1], "pcie_send": [10, 0, 1], "pcie_receive": [20, 0, 1], "nvlink_send": [30, 0, 1],
    "nvlink_receive": [40, 0, 1], "power": [500, 0, 1], "memory_used": [40, 0, 1], "sm_clock": [1500, 0, 1]})";

std::string OneGpu(const std::string& members) {
  return R"({"gpus": [{"name": "Fake")" + std::string(kSteady) + members + "}]}";
}

TEST_F(NvmlProbesTest, ReadsEightGpusWhoseLoadVaries) {
  StartFile(fullbore::testing::SourceDirectory() + "/tests/fakes/nvml/eight_h100.json");
  for (int i = 0; i <= 10; ++i) SampleAt(0.2 * i);
  EXPECT_THAT(sink_.messages, IsEmpty());
  EXPECT_EQ(sink_.facts["gpus"], "8");
  EXPECT_EQ(sink_.facts["gpu7"], "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(sink_.facts["driver_version"], "550.54.15");
  EXPECT_EQ(sink_.facts["cuda_driver_version"], "12.4");
  EXPECT_EQ(sink_.Count("gpu_utilization{gpu=7}"), 11);
  EXPECT_EQ(sink_.Count("gpu_tensor_active{gpu=7}"), 10) << "from the second sample on";
  EXPECT_NE(sink_.Last("gpu_sm_active{gpu=0}"), sink_.Last("gpu_sm_active{gpu=3}"));
}

TEST_F(NvmlProbesTest, ConvertsUnits) {
  Start(OneGpu(""));
  SampleAt(0);
  SampleAt(1);
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_utilization{gpu=0}"), 0.98);
  EXPECT_NEAR(*sink_.Last("gpu_sm_active{gpu=0}"), 0.4, 1e-9);
  EXPECT_NEAR(*sink_.Last("gpu_tensor_active{gpu=0}"), 0.005, 1e-9);
  EXPECT_NEAR(*sink_.Last("gpu_pcie_send{gpu=0}"), 10 << 20, 1) << "GPM counts MiB/s";
  EXPECT_NEAR(*sink_.Last("gpu_pcie_receive{gpu=0}"), 20 << 20, 1);
  EXPECT_NEAR(*sink_.Last("gpu_nvlink_send{gpu=0}"), 30 << 20, 1);
  EXPECT_NEAR(*sink_.Last("gpu_nvlink_receive{gpu=0}"), 40 << 20, 1);
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_power{gpu=0}"), 500);
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_power_limit{gpu=0}"), 700);
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_energy{gpu=0}"), 500) << "joules since the recording began";
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_memory_used{gpu=0}"), 40.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_memory_total{gpu=0}"), 80.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_sm_clock{gpu=0}"), 1.5e9);
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_sm_clock_max{gpu=0}"), 1.98e9);
  EXPECT_EQ(sink_.Last("gpu_throttle_reasons{gpu=0}"), 4);
  EXPECT_NEAR(*sink_.Last("gpu_throttle_power{gpu=0}"), 0.1, 1e-6);
  EXPECT_EQ(sink_.Last("gpu_throttle_thermal{gpu=0}"), 0);
  EXPECT_EQ(sink_.Last("gpu_remapped_rows{gpu=0}"), 1);
}

// The readings of a three-second run of a GPU slowed down for a fifth of the time by the software thermal
// limit and for a third by the power brake.
struct Slowed {
  double thermal = 0, power = 0;
};

class SlowedDownTest : public NvmlProbesTest {
 protected:
  Slowed By(const std::string& driver, const std::string& members = "") {
    files_.Write("/script.json", R"({"driver": ")" + driver + R"(", "gpus": [{"name": "Fake", "slowed":
        {"software_thermal": 0.2, "power_brake": 0.3})" +
                                     members + "}]}");
    StartFile(files_.root() + "/script.json");
    for (int i = 0; i <= 3; ++i) SampleAt(i);
    return {sink_.Last("gpu_throttle_thermal{gpu=0}").value_or(-1),
            sink_.Last("gpu_throttle_power{gpu=0}").value_or(-1)};
  }
};

TEST_F(SlowedDownTest, IsReadByTheFieldNumbersOfEachDriver) {
  for (const char* driver : {"575.51.03", "580.82.07", "590.44.01", "610.10"}) {
    const Slowed slowed = By(driver);
    EXPECT_NEAR(slowed.thermal, 0.2, 1e-6) << driver;
    EXPECT_NEAR(slowed.power, 0.3, 1e-6) << driver;
  }
}

TEST_F(SlowedDownTest, SettingsWithTheSameFieldNumbersAreNotThrottling) {
  const Slowed slowed = By("570.133.20");
  EXPECT_EQ(slowed.thermal, 0);
  EXPECT_NEAR(slowed.power, 0.1, 1e-6) << "the power cap alone";
}

TEST_F(SlowedDownTest, WithoutCountersTheReasonsOfTheMomentCount) {
  const std::string no_policy = R"(, "errors": {"field:75": 3}, "reasons": )";
  EXPECT_EQ(By("550.54.15", no_policy + "160").thermal, 1) << "0x20: software's thermal limit";
  EXPECT_EQ(By("550.54.15", no_policy + "160").power, 1) << "0x80: the power brake";
  EXPECT_EQ(By("550.54.15", no_policy + "4").thermal, 0);
}

TEST_F(NvmlProbesTest, GpmCoversTheWholeTimeBetweenReadings) {
  // A sine of 1 s: its mean over any whole second is exactly the mean, at any moment it is not.
  Start(R"({"gpus": [{"waves": {"sm_active": [50, 50, 1]}}]})");
  SampleAt(0.3);
  SampleAt(1.3);
  EXPECT_NEAR(*sink_.Last("gpu_sm_active{gpu=0}"), 0.5, 1e-9);
}

TEST_F(NvmlProbesTest, GpmSamplesTooCloseTogetherAreNotTaken) {
  Start(OneGpu(""));
  SampleAt(0);
  SampleAt(0.05);
  EXPECT_EQ(sink_.Count("gpu_sm_active{gpu=0}"), 0);
  SampleAt(0.15);
  EXPECT_EQ(sink_.Count("gpu_sm_active{gpu=0}"), 1);
}

TEST_F(NvmlProbesTest, GpmValuesThatAreNotNumbersAreLeftOut) {
  Start(OneGpu(R"(, "gpm_nan": [5])"));
  SampleAt(0);
  SampleAt(1);
  EXPECT_FALSE(sink_.Last("gpu_tensor_active{gpu=0}"));
  EXPECT_TRUE(sink_.Last("gpu_sm_active{gpu=0}"));
}

TEST_F(NvmlProbesTest, BeforeHopperTrafficComesFromCounters) {
  Start(OneGpu(R"(, "gpm": false)"));
  SampleAt(0);
  SampleAt(1);
  EXPECT_FALSE(sink_.Last("gpu_sm_active{gpu=0}"));
  EXPECT_TRUE(sink_.Last("gpu_utilization{gpu=0}"));
  EXPECT_NEAR(*sink_.Last("gpu_pcie_send{gpu=0}"), 10 << 20, 1);
  EXPECT_NEAR(*sink_.Last("gpu_pcie_receive{gpu=0}"), 20 << 20, 1);
  EXPECT_NEAR(*sink_.Last("gpu_nvlink_receive{gpu=0}"), 40 << 20, 2000);
}

TEST_F(NvmlProbesTest, UnsupportedMetricsAreSwitchedOffAloneAndSilently) {
  Start(OneGpu(R"(, "errors": {"nvmlDeviceGetUtilizationRates": 3, "gpm:5": 3, "nvmlDeviceGetTemperature": 13,
                     "nvmlDeviceGetTotalEccErrors": 3, "nvmlDeviceGetMemoryInfo_v2": 25, "field:186": 3})"));
  SampleAt(0);
  SampleAt(1);
  EXPECT_THAT(sink_.messages, IsEmpty());
  for (const char* name : {"gpu_utilization", "gpu_tensor_active", "gpu_temperature", "gpu_ecc_corrected"}) {
    EXPECT_FALSE(sink_.Last(std::string(name) + "{gpu=0}")) << name;
  }
  EXPECT_TRUE(sink_.Last("gpu_sm_active{gpu=0}"));
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_memory_used{gpu=0}"), 40.0 * (1 << 30)) << "by the older call";
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_power{gpu=0}"), 500) << "by the older call";
}

TEST_F(NvmlProbesTest, TransientErrorsLeaveOutOneReading) {
  Start(R"({"gpus": [{"errors": {"nvmlDeviceGetTemperature": 21}}]})");
  SampleAt(0);
  EXPECT_FALSE(sink_.Last("gpu_temperature{gpu=0}"));
  EXPECT_TRUE(sink_.Last("gpu_power{gpu=0}"));
}

TEST_F(NvmlProbesTest, ALostGpuIsReportedOnceAndFoundAgain) {
  Start(R"({"gpus": [{}, {"lost_at": 2, "back_at": 20}]})");
  SampleAt(0);
  SampleAt(1);
  sink_.Clear();
  for (int t = 2; t < 20; ++t) SampleAt(t);
  EXPECT_THAT(sink_.messages, ElementsAre(HasSubstr("GPU 1 is lost")));
  EXPECT_FALSE(sink_.Last("gpu_utilization{gpu=1}")) << "unknown is absent";
  EXPECT_FALSE(sink_.Last("gpu_memory_used{gpu=1}"));
  EXPECT_EQ(sink_.Count("gpu_utilization{gpu=0}"), 18) << "the other goes on";
  for (int t = 20; t < 30; ++t) SampleAt(t);
  EXPECT_THAT(sink_.messages, ElementsAre(HasSubstr("lost"), HasSubstr("GPU 1 is back")));
  EXPECT_TRUE(sink_.Last("gpu_sm_active{gpu=1}"));
  EXPECT_TRUE(sink_.Last("gpu_power{gpu=1}"));
}

TEST_F(NvmlProbesTest, ADriverMismatchIsReportedOnceWithARemedy) {
  Start(R"({"init": 18, "gpus": [{}]})");
  SampleAt(0);
  SampleAt(1);
  EXPECT_THAT(sink_.messages, ElementsAre(HasSubstr("Reboot")));
  EXPECT_EQ(sink_.series_count(), 0);
}

TEST_F(NvmlProbesTest, ADriverMismatchWhileRunningStopsTheRecordingOfGpus) {
  Start(R"({"gpus": [{"count": 2, "errors": {"nvmlDeviceGetUtilizationRates": 18}}]})");
  SampleAt(0);
  SampleAt(1);
  EXPECT_THAT(sink_.messages, ElementsAre(HasSubstr("error 18")));
  EXPECT_EQ(sink_.series_count(), 0);
}

TEST_F(NvmlProbesTest, AccessLostInAContainerIsReportedOnceForAllGpus) {
  Start(R"({"gpus": [{"count": 8, "errors": {"nvmlDeviceGetUtilizationRates": 999}}]})");
  SampleAt(0);
  SampleAt(1);
  EXPECT_THAT(sink_.messages, ElementsAre(HasSubstr("restart the container")));
}

TEST_F(NvmlProbesTest, InstancesOfADividedGpuAreReadThroughTheirParent) {
  Start(OneGpu(R"(, "mig": [1, 2])"));
  SampleAt(0);
  SampleAt(1);
  EXPECT_EQ(sink_.facts["gpu0_mig_instances"], "2");
  EXPECT_NEAR(*sink_.Last("gpu_sm_active{gpu=0,mig=0}"), 0.4, 1e-9);
  EXPECT_NEAR(*sink_.Last("gpu_sm_active{gpu=0,mig=1}"), 0.4, 1e-9);
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_memory_total{gpu=0,mig=1}"), 10.0 * (1 << 30));
  EXPECT_FALSE(sink_.Last("gpu_utilization{gpu=0}")) << "not on MIG";
  EXPECT_FALSE(sink_.Last("gpu_utilization{gpu=0,mig=0}"));
  EXPECT_TRUE(sink_.Last("gpu_power{gpu=0}"));
  EXPECT_FALSE(sink_.Last("gpu_power{gpu=0,mig=0}"));
  EXPECT_THAT(sink_.messages, IsEmpty());
}

TEST_F(NvmlProbesTest, ProcessesAreSplitIntoTheCommandsAndOthers) {
  Start(
      R"({"gpus": [{"processes": [{"pid": 1000, "memory_gib": 3, "sm": 60}, {"pid": 5, "memory_gib": 1, "sm": 30}]}]})");
  SampleAt(0);
  SampleAt(1);
  EXPECT_EQ(sink_.Last("gpu_process_count{gpu=0}"), 2);
  EXPECT_EQ(sink_.Last("gpu_process_memory{gpu=0,owner=command}"), 3.0 * (1 << 30));
  EXPECT_EQ(sink_.Last("gpu_process_memory{gpu=0,owner=other}"), 1.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_process_sm{gpu=0,owner=command}"), 0.6);
  EXPECT_DOUBLE_EQ(*sink_.Last("gpu_process_sm{gpu=0,owner=other}"), 0.3) << "without stale and wild values";
}

TEST_F(NvmlProbesTest, ProcessNumbersOfAnotherNamespaceAreNotTakenForStrangers) {
  Start(R"({"gpus": [{"processes": [{"pid": 70001, "memory_gib": 3, "sm": 60}]}]})");
  SampleAt(0);
  EXPECT_EQ(sink_.Last("gpu_process_count{gpu=0}"), 1);
  EXPECT_FALSE(sink_.Last("gpu_process_memory{gpu=0,owner=other}"));
}

TEST_F(NvmlProbesTest, AnXidIsAMessageAndAReading) {
  Start(R"({"gpus": [{}, {"xid_at": [1.5, 79]}]})");
  SampleAt(1);
  EXPECT_THAT(sink_.messages, IsEmpty());
  SampleAt(2);
  SampleAt(3);
  EXPECT_THAT(sink_.messages,
              ElementsAre(HasSubstr("GPU 1 reported Xid 79: the GPU has fallen off the bus")));
  EXPECT_EQ(sink_.Last("gpu_xid{gpu=1}"), 79);
}

TEST_F(NvmlProbesTest, NoLibraryIsANormalCase) {
  setenv("FULLBORE_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
  session_ = std::make_shared<Session>();
  fast_ = std::make_unique<FastProbe>(session_);
  slow_ = std::make_unique<SlowProbe>(session_, [](int64_t) { return false; });
  SampleAt(0);
  EXPECT_EQ(sink_.series_count(), 0);
  EXPECT_THAT(sink_.messages, IsEmpty());
}

TEST_F(NvmlProbesTest, ALibraryWithoutADriverIsReported) {
  session_ = std::make_shared<Session>();
  fast_ = std::make_unique<FastProbe>(session_);
  slow_ = std::make_unique<SlowProbe>(session_, [](int64_t) { return false; });
  unsetenv("FULLBORE_FAKE_NVML");
  SampleAt(0);
  SampleAt(1);
  EXPECT_THAT(sink_.messages, ElementsAre(HasSubstr("driver is not loaded")));
}

}  // namespace
}  // namespace fullbore::probe::nvml
