#include "explain/diagnose/refused_memory.h"

#include <gtest/gtest.h>

namespace fullbore::diagnose {
namespace {

// In the words of PyTorch 2.9; the sizes are made up.
constexpr char kSaid[] =
    "train.py:40: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 24.00 GiB of which "
    "512.00 MiB is free. Including non-PyTorch memory, this process has 23.50 GiB memory in use. Of the allocated "
    "memory 20.25 GiB is allocated by PyTorch, and 3.00 GiB is reserved by PyTorch but unallocated.";

TEST(RefusedMemoryTest, ReadsWhatTorchSays) {
  const RefusedMemory refused = ParseRefusedMemory(kSaid);
  EXPECT_EQ(refused.place, "train.py:40");
  EXPECT_EQ(refused.asked, 1.5 * 0x1p30);
  EXPECT_EQ(refused.capacity, 24 * 0x1p30);
  EXPECT_EQ(refused.free, 512 * 0x1p20);
  EXPECT_EQ(refused.allocated, 20.25 * 0x1p30);
  EXPECT_EQ(refused.unallocated, 3 * 0x1p30);
}

TEST(RefusedMemoryTest, ReadsWhatOlderVersionsSaid) {
  const RefusedMemory refused = ParseRefusedMemory(
      "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.71 GiB already allocated; "
      "5.69 MiB free; 9.80 GiB reserved in total by PyTorch)");
  EXPECT_EQ(refused.place, "");
  EXPECT_EQ(refused.asked, 20 * 0x1p20);
  EXPECT_EQ(refused.capacity, 10.76 * 0x1p30);
  EXPECT_EQ(refused.free, 5.69 * 0x1p20);
  EXPECT_EQ(refused.unallocated, std::nullopt);
}

TEST(RefusedMemoryTest, LeavesUnknownWhatIsNotSaid) {
  for (const char* said :
       {"", "CUDA out of memory.", "Tried to allocate", "Tried to allocate much memory", "free"})
    EXPECT_EQ(ParseRefusedMemory(said).asked, std::nullopt) << said;
}

}  // namespace
}  // namespace fullbore::diagnose
