#include "measure/stacks/family.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"

namespace fullbore::stacks {
namespace {

namespace fs = std::filesystem;

// A /proc with the processes of a test.
class FamilyTest : public ::testing::Test {
 protected:
  static void WriteStat(const std::string& directory, int64_t id, int64_t parent, int ticks) {
    fs::create_directories(directory);
    std::ofstream(directory + "/stat")
        << fmt::format("{} (python) S {} 1 1 0 -1 0 0 0 0 0 {} 0 0 0 20 0 1 0 100 0 0\n", id, parent, ticks);
  }
  void Process(int64_t pid, int64_t parent, int ticks, const std::string& environment = "") {
    WriteStat(directory_ / std::to_string(pid), pid, parent, ticks);
    std::ofstream(directory_ / fmt::format("{}/environ", pid)) << environment;
  }
  void Thread(int64_t pid, int64_t thread, int ticks) {
    WriteStat(directory_ / fmt::format("{}/task/{}", pid, thread), thread, 1, ticks);
  }

  ScratchDirectory directory_;
  Family family_{directory_.path(), 10};
};

TEST_F(FamilyTest, AChildOfATrainerLoadsUntilItsStacksSayThatItTrains) {
  Process(10, 1, 0);
  Process(11, 10, 0);
  family_.Look();
  EXPECT_EQ(family_.members().at(11).role, "loader");
  EXPECT_EQ(family_.TrainerOf(11), 10);
  family_.SetRole(11, "trainer");
  Process(12, 11, 0);
  family_.Look();
  EXPECT_EQ(family_.members().at(12).role, "loader");
  EXPECT_EQ(family_.TrainerOf(12), 11);
}

TEST_F(FamilyTest, APoolIsTheThreadsThatComputeAsMuchAsTheBusiest) {
  Process(10, 1, 500, std::string("RANK=3\0OMP_NUM_THREADS=4\0", 25));
  for (const int64_t thread : {10, 20, 21}) Thread(10, thread, 1000);
  family_.Look();
  EXPECT_EQ(family_.PoolOf(10), 0) << "what was before counts for nothing";
  Thread(10, 10, 1200);
  Thread(10, 20, 1150);
  Thread(10, 21, 1010);
  family_.Look();
  EXPECT_EQ(family_.PoolOf(10), 2);
  EXPECT_EQ(family_.members().at(10).rank, 3);
  EXPECT_EQ(family_.members().at(10).omp_threads, 4);
}

TEST_F(FamilyTest, AProcessUsesADeviceWhoseFileItHoldsOpen) {
  Process(10, 1, 0);
  const std::string open = directory_ / "10/fd";
  EXPECT_FALSE(family_.UsesDevice(10));
  fs::create_directories(open);
  fs::create_symlink("/dev/null", open + "/0");
  EXPECT_FALSE(family_.UsesDevice(10));
  fs::create_symlink("/dev/nvidia0", open + "/7");
  EXPECT_TRUE(family_.UsesDevice(10));
}

}  // namespace
}  // namespace fullbore::stacks
