#include "tune/trial/printed.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/testing/scratch_directory.h"

namespace fullbore::tune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PrintedTest : public testing::Test {
 protected:
  void Print(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  ScratchDirectory directory_;
  std::string path_ = directory_.path() + "/output";
};

TEST_F(PrintedTest, TheFirstGroupOfEachLineIsAValue) {
  auto reader = MetricReader::Make("([0-9.,]+) img/s");
  ASSERT_TRUE(reader.ok());
  reader->Read(path_);  // nothing is there yet
  Print("epoch 1\nstep 5: 1,840 img/s\rstep 6: 97.5 img/s\nstep 7: 8");
  reader->Read(path_);
  EXPECT_THAT(reader->values(), ElementsAre(1840, 97.5));
  Print("5 img/s\n");
  reader->Read(path_);
  EXPECT_THAT(reader->values(), ElementsAre(1840, 97.5, 85));
}

TEST_F(PrintedTest, APatternMustBeOneAndHaveAGroup) {
  EXPECT_FALSE(MetricReader::Make("([0-9]+").ok());
  EXPECT_FALSE(MetricReader::Make("[0-9]+").ok());
}

TEST_F(PrintedTest, AVeryLongLineIsCutNotSearched) {
  auto reader = MetricReader::Make(".*rate ([0-9]+)");
  ASSERT_TRUE(reader.ok());
  Print(std::string(1 << 20, 'x') + "rate 5\nrate 6\n");
  reader->Read(path_);
  EXPECT_THAT(reader->values(), ElementsAre(6));
}

TEST_F(PrintedTest, WhatStoodInALogBeforeIsNotRead) {
  Print("1 img/s\n");
  auto reader = MetricReader::Make("([0-9]+) img/s", path_);
  ASSERT_TRUE(reader.ok());
  reader->Read(path_);
  Print("2 img/s\n");
  reader->Read(path_);
  EXPECT_THAT(reader->values(), ElementsAre(2));
}

TEST_F(PrintedTest, ALogThatIsMadeAnewIsReadFromItsBeginning) {
  Print("1 img/s, from yesterday\n");
  auto reader = MetricReader::Make("([0-9]+) img/s", path_);
  ASSERT_TRUE(reader.ok());
  reader->Read("");  // the program has not written yet
  std::ofstream(path_) << "2 img/s\n";
  reader->Read(path_);
  EXPECT_THAT(reader->values(), ElementsAre(2));
}

TEST_F(PrintedTest, LastWordsAreTheLastLineThatSaysAnything) {
  Print("Traceback\n  File\nValueError: no such file\n\n");
  EXPECT_EQ(LastWords(path_), "ValueError: no such file");
  EXPECT_EQ(LastWords(directory_.path() + "/missing"), "");
}

TEST_F(PrintedTest, MemoryThatWasNotThereIsRecognisedInManyWords) {
  for (const char* line : {
           "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
           "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
           "RuntimeError: [enforce fail at alloc_cpu.cpp:115] err == 0. DefaultCPUAllocator: can't allocate "
           "memory",
           "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that "
           "dataloader's workers are out of shared memory.",
           "terminate called after throwing an instance of 'std::bad_alloc'",
       }) {
    EXPECT_THAT(SaysOutOfMemory(std::string("step 1\n") + line + "\nbye\n"), HasSubstr(line));
  }
  EXPECT_EQ(SaysOutOfMemory("loss 0.1\nmemory 3 GB\n"), "");
}

}  // namespace
}  // namespace fullbore::tune
