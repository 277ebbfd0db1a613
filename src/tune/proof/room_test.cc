#include "tune/proof/room.h"

#include <gtest/gtest.h>

namespace fullbore::tune {
namespace {

constexpr int64_t kGb = 1'000'000'000;

MemoryNow Left(int64_t host_gb, const std::vector<int64_t>& free_gb = {}) {
  MemoryNow now{host_gb * kGb, {}};
  for (size_t i = 0; i < free_gb.size(); ++i)
    now.devices.push_back({"GPU " + std::to_string(i), free_gb[i] * kGb, 80 * kGb});
  return now;
}

std::optional<std::string> OnHost(int64_t before, int64_t beside, MemoryUse first = {},
                                  MemoryUse second = {}) {
  return NoRoomForBoth(Left(before), Left(beside), /*uses_device=*/false, first, second);
}

TEST(RoomTest, TheSecondIsExpectedToTakeWhatTheFirstDoes) {
  EXPECT_FALSE(OnHost(20, 11));
  EXPECT_EQ(OnHost(20, 10), "there is not enough memory for both: they take 10.0 and 10.0 GB of 20.0 GB");
  EXPECT_TRUE(OnHost(200, 108)) << "a tenth is everybody else's";
}

TEST(RoomTest, WhatTheyTookAloneIsMoreThanWhatIsTakenWhenOneHasWarmedUp) {
  const MemoryUse little{2 * kGb, 0.1}, much{18 * kGb, 0.9};
  EXPECT_FALSE(OnHost(20, 18, little, little));
  EXPECT_TRUE(OnHost(20, 18, little, much)) << "a larger batch";
  EXPECT_TRUE(OnHost(20, 18, much, little)) << "it grows later";
  EXPECT_TRUE(OnHost(20, 10, little, little)) << "what is taken now counts, too";
}

TEST(RoomTest, WhereNobodySaysWhatIsLeftThereIsNoRoom) {
  EXPECT_EQ(NoRoomForBoth({}, {}, /*uses_device=*/false, {}, {}), "how much memory is left is not known");
}

std::optional<std::string> OnDevices(const MemoryNow& before, const MemoryNow& beside,
                                     MemoryUse second = {}) {
  return NoRoomForBoth(before, beside, /*uses_device=*/true, {}, second);
}

TEST(RoomTest, EachDeviceThatTheFirstOneTookHasToHoldBoth) {
  EXPECT_FALSE(OnDevices(Left(100, {80, 80}), Left(90, {50, 50})));
  EXPECT_EQ(OnDevices(Left(100, {80, 80}), Left(90, {50, 40})),
            "there is not enough memory for both on GPU 1: they take 40.0 and 40.0 GB of 80.0 GB");
  EXPECT_TRUE(OnDevices(Left(100, {80}), Left(40, {79}))) << "on the host";
  EXPECT_FALSE(OnDevices(Left(100, {80, 5}), Left(90, {50, 5}))) << "somebody else's device";
}

TEST(RoomTest, ADeviceHoldsTheSecondOneAsItWasAlone) {
  EXPECT_TRUE(OnDevices(Left(100, {80}), Left(90, {70}), {70 * kGb, 0.9}));
  EXPECT_FALSE(OnDevices(Left(100, {80}), Left(90, {70}), {40 * kGb, 0.5}));
  EXPECT_FALSE(OnDevices(Left(100, {50}), Left(90, {35}), {15 * kGb, 45. / 80}))
      << "30 GB are somebody else's";
}

TEST(RoomTest, DevicesOfWhichNothingIsKnownHaveNoRoom) {
  EXPECT_EQ(OnDevices(Left(100), Left(90)), "how much memory their devices have left is not known");
  EXPECT_TRUE(OnDevices(Left(100, {80}), Left(90, {70, 80}))) << "one has appeared";
}

TEST(RoomTest, ADeviceIsTakenByMoreThanAMoment) {
  EXPECT_TRUE(AnyDeviceWasTaken(Left(1, {80, 80}), Left(1, {80, 79})));
  EXPECT_FALSE(AnyDeviceWasTaken(Left(1, {80, 79}), Left(1, {80, 80})));
}

}  // namespace
}  // namespace fullbore::tune
