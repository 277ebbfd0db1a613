// Against the fake library of tests/fakes/nvml, through dlopen.
#include "measure/probe/nvml/device_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "measure/probe/testing/fake_machine.h"

namespace fullbore::probe::nvml {
namespace {

class DeviceMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("FULLBORE_NVML", FULLBORE_FAKE_NVML_LIBRARY, 1); }
  void TearDown() override {
    unsetenv("FULLBORE_NVML");
    unsetenv("FULLBORE_FAKE_NVML");
  }
  std::vector<DeviceMemory> Of(const std::string& script) {
    files_.Write("/script.json", script);
    setenv("FULLBORE_FAKE_NVML", (files_.root() + "/script.json").c_str(), 1);
    return MemoryOfDevices();
  }

  FakeMachine files_;
};

constexpr double kGiB = 1024.0 * 1024 * 1024;

TEST_F(DeviceMemoryTest, IsWhatIsLeftOfEachDevice) {
  const auto devices =
      Of(R"({"init": 0, "gpus": [{"count": 2, "memory_gib": 40, "waves": {"memory_used": [20, 0, 1]}}]})");
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[1].title, "GPU 1");
  EXPECT_NEAR(static_cast<double>(devices[1].total) / kGiB, 40, 1e-3);
  EXPECT_NEAR(static_cast<double>(devices[1].free) / kGiB, 30, 1e-3) << "the wave is of 80 GiB";
}

TEST_F(DeviceMemoryTest, IsNothingWithoutADevice) {
  EXPECT_TRUE(Of(R"({"init": 0, "gpus": []})").empty());
  setenv("FULLBORE_NVML", "/nowhere/libnvidia-ml.so.1", 1);
  EXPECT_TRUE(MemoryOfDevices().empty());
}

}  // namespace
}  // namespace fullbore::probe::nvml
