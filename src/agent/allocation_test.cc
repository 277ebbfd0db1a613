#include "agent/allocation.h"

#include <gmock/gmock.h>

#include <string>

namespace fullbore::agent {
namespace {

using testing::ElementsAre;

// Variables separated by blanks here, by zeros there.
Allocation In(std::string environment) {
  for (char& c : environment) c = c == ' ' ? '\0' : c;
  return AllocationInEnvironment(environment);
}

TEST(AllocationTest, SlurmNamesTheKernelsNumbers) {
  EXPECT_THAT(In("PATH=/bin SLURM_JOB_GPUS=0,2-3 CUDA_VISIBLE_DEVICES=0,1,2").minor_numbers,
              ElementsAre(0, 2, 3));
  EXPECT_THAT(In("SLURM_STEP_GPUS=5").minor_numbers, ElementsAre(5));
  EXPECT_TRUE(Includes(In("SLURM_JOB_GPUS=2"), {.index = 7, .minor_number = 2, .uuid = "GPU-a"}));
  EXPECT_FALSE(Includes(In("SLURM_JOB_GPUS=2"), {.index = 2, .minor_number = 7, .uuid = "GPU-a"}));
}

TEST(AllocationTest, ContainerEnginesNameUuidsOrNvmlsNumbers) {
  const Allocation given = In("NVIDIA_VISIBLE_DEVICES=GPU-11112222-aaaa,1");
  EXPECT_TRUE(Includes(given, {.index = 0, .minor_number = {}, .uuid = "GPU-11112222-aaaa"}));
  EXPECT_TRUE(Includes(given, {.index = 1, .minor_number = {}, .uuid = "GPU-x"}));
  EXPECT_FALSE(Includes(given, {.index = 2, .minor_number = 1, .uuid = "GPU-x"}));
  EXPECT_TRUE(Includes(In("CUDA_VISIBLE_DEVICES=GPU-1111"),
                       {.index = 0, .minor_number = {}, .uuid = "GPU-11112222"}));
}

TEST(AllocationTest, AnInstanceIsGivenByItsUuidAlone) {
  const Named instance = {.index = 0, .minor_number = 0, .uuid = "MIG-5", .instance = true};
  EXPECT_TRUE(Includes(In("NVIDIA_VISIBLE_DEVICES=MIG-5"), instance));
  EXPECT_FALSE(Includes(In("NVIDIA_VISIBLE_DEVICES=0"), instance));
}

TEST(AllocationTest, WhatSaysNothingIsNoAllocation) {
  for (const char* environment :
       {"", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=void", "CUDA_VISIBLE_DEVICES=0,1",
        "SLURM_JOB_GPUS=", "SLURM_JOB_GPUS=x", "SLURM_JOB_GPUS_PER_NODE=1", "XSLURM_JOB_GPUS=1",
        "SLURM_JOB_GPUS=0-99999999", "SLURM_JOB_GPUS=-1", "NVIDIA_VISIBLE_DEVICES=GPU-"})
    EXPECT_TRUE(In(environment).empty()) << environment;
}

TEST(AllocationTest, AListOfAllowedDevicesNamesThem) {
  EXPECT_THAT(AllocationInDevicesList("c 1:3 rwm\nc 195:0 rwm\nc 195:3 rw\nc 195:255 rwm\nb 195:4 rwm\n")
                  .minor_numbers,
              ElementsAre(0, 3));
  EXPECT_TRUE(AllocationInDevicesList("a *:* rwm\n").empty()) << "everything is allowed: nothing is given";
  EXPECT_TRUE(AllocationInDevicesList("c 195:* rwm\nc 195\nc\n\n").empty());
}

}  // namespace
}  // namespace fullbore::agent
