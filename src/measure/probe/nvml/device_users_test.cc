// Against the fake library of tests/fakes/nvml, through dlopen.
#include "measure/probe/nvml/device_users.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "measure/probe/testing/fake_machine.h"

namespace fullbore::probe::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DeviceUsersTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("FULLBORE_NVML", FULLBORE_FAKE_NVML_LIBRARY, 1); }
  void TearDown() override {
    session_.reset();
    unsetenv("FULLBORE_NVML");
    unsetenv("FULLBORE_FAKE_NVML");
  }
  void Start(const std::string& gpus) {
    files_.Write("/script.json", R"({"gpus": [)" + gpus + "]}");
    setenv("FULLBORE_FAKE_NVML", (files_.root() + "/script.json").c_str(), 1);
    session_ = std::make_unique<Session>();
    ASSERT_TRUE(session_->Start(sink_));
  }
  // Of the device at this place of the session's list; empty where it does not say.
  std::vector<int64_t> PidsOn(size_t place) {
    DeviceUsers users(*session_);
    std::vector<int64_t> pids;
    for (const DeviceUser& user :
         users.Of(session_->gpus()[place], sink_).value_or(std::vector<DeviceUser>()))
      pids.push_back(user.pid);
    return pids;
  }

  FakeMachine files_;
  FakeSink sink_;
  std::unique_ptr<Session> session_;
};

TEST_F(DeviceUsersTest, WhoComputesAndWhoDrawsAreUsersAlike) {
  Start(R"({"processes": [{"pid": 20}, {"pid": 10, "graphics": true}, {"pid": 20, "graphics": true}]})");
  EXPECT_THAT(PidsOn(0), ElementsAre(10, 20));
}

TEST_F(DeviceUsersTest, MoreThanThereIsRoomForAreStillAll) {
  std::string processes;
  for (int pid = 1; pid <= 300; ++pid)
    processes += (pid > 1 ? "," : "") + (R"({"pid": )" + std::to_string(pid)) + "}";
  Start(R"({"processes": [)" + processes + "]}");
  EXPECT_EQ(PidsOn(0).size(), 300U);
}

TEST_F(DeviceUsersTest, AnInstanceHasItsOwn) {
  Start(R"({"mig": [1, 2], "processes": [{"pid": 10, "mig": 1}, {"pid": 20, "mig": 2}]})");
  EXPECT_THAT(PidsOn(1), ElementsAre(10));
  EXPECT_THAT(PidsOn(2), ElementsAre(20));
}

TEST_F(DeviceUsersTest, ADeviceThatDoesNotSayIsNotOneWithoutUsers) {
  Start(R"({"errors": {"nvmlDeviceGetComputeRunningProcesses_v2": 4}}, {})");
  DeviceUsers first(*session_), second(*session_);
  EXPECT_FALSE(first.Of(session_->gpus()[0], sink_));
  EXPECT_THAT(*second.Of(session_->gpus()[1], sink_), IsEmpty());
}

TEST_F(DeviceUsersTest, WorkedOnlyWhoRanAKernel) {
  Start(R"({"processes": [{"pid": 10, "sm": 40}, {"pid": 20, "sm": 0}]})");
  DeviceUsers users(*session_);
  EXPECT_THAT(*users.WorkedSince(session_->gpus()[0], sink_), ElementsAre(10));
}

TEST_F(DeviceUsersTest, DevicesAreToldApartByNumberNameAndUuid) {
  Start(R"({"mig": [1]}, {})");
  const auto& gpus = session_->gpus();
  EXPECT_EQ(gpus[0].uuid, "GPU-00000000-0000-0000-0000-000000000000");
  EXPECT_EQ(gpus[1].uuid, "MIG-00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(gpus[1].minor_number, 0U) << "its parent's";
  EXPECT_EQ(gpus[2].minor_number, 1U);
}

}  // namespace
}  // namespace fullbore::probe::nvml
