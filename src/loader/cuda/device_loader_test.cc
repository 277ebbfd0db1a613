// Over a driver that postpones all work as long as it may, so that memory that is used again too early shows.
#include "loader/cuda/device_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "base/testing/scratch_directory.h"

namespace fullbore::loader::cuda {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kPatience(60'000);  // a hang, on any machine

// A list of made samples: texts, and labels by line.
class DeviceLoaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("FULLBORE_CUDA", FAKE_CUDA, 1);
    void* const library = dlopen(FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    queue_read_ = reinterpret_cast<Read>(dlsym(library, "fake_cuda_queue_read"));
    reinterpret_cast<Make>(dlsym(library, "cuStreamCreate"))(&stream_, 0);
    finish_ = reinterpret_cast<Finish>(dlsym(library, "fake_cuda_finish"));
    live_ = reinterpret_cast<Live>(dlsym(library, "fake_cuda_live"));
    std::ofstream list(directory_ / "list.csv");
    list << "path,label\n";
    for (int i = 0; i < kSamples; ++i) {
      const std::string name = fmt::format("{:02}.npy", i);
      WriteNpy(directory_ / name, i);
      list << name << "," << i % 5 << "\n";
    }
    options_.source.paths = {directory_ / "list.csv"};
    options_.batch_size = 4;
    options_.shuffle = false;
  }

  // 256 numbers, all equal to the sample's own.
  static void WriteNpy(const std::string& path, int value) {
    std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (256,), }";
    header.resize(117, ' ');
    header += '\n';
    std::ofstream file(path, std::ios::binary);
    file.write("\x93NUMPY\x01\x00", 8);
    file.put(static_cast<char>(header.size())).put(0);
    file << header;
    for (int i = 0; i < 256; ++i) file.write(reinterpret_cast<const char*>(&value), sizeof value);
  }

  DeviceLoader Open() {
    auto loader = DeviceLoader::Open(options_, 0);
    EXPECT_TRUE(loader.ok()) << loader.error().text;
    loader->SetStream(stream_);
    return std::move(*loader);
  }

  // Queues a kernel on the consumer's stream that reads the first field; what it read is there after Finish.
  std::shared_ptr<std::vector<int>> QueueKernel(const Batch& batch) {
    auto values = std::make_shared<std::vector<int>>(256 * static_cast<size_t>(batch.rows));
    queue_read_(values->data(), reinterpret_cast<DevicePointer>(batch.fields[0].data),
                values->size() * sizeof(int), stream_);
    return values;
  }
  std::vector<int> Values(const Batch& batch) {
    const auto values = QueueKernel(batch);
    finish_();
    return *values;
  }

  static constexpr int kSamples = 22;
  using Read = void (*)(void*, DevicePointer, size_t, Stream);
  using Live = int (*)();
  using Finish = void (*)();
  using Make = int (*)(Stream*, unsigned);
  Stream stream_ = nullptr;  // one that does not wait for the default stream
  Read queue_read_ = nullptr;
  Finish finish_ = nullptr;
  Live live_ = nullptr;
  ScratchDirectory directory_;  // of this process alone: tests run beside each other
  LoaderOptions options_;
};

TEST_F(DeviceLoaderTest, DeliversEverySampleOnTheDevice) {
  DeviceLoader loader = Open();
  for (int epoch = 0; epoch < 3; ++epoch) {
    int next = 0;
    for (;;) {
      const auto batch = loader.Next(kPatience);
      ASSERT_TRUE(batch.ok()) << batch.error().text;
      if (!*batch) break;
      const auto values = Values(**batch);
      for (size_t row = 0; row < values.size() / 256; ++row, ++next) {
        ASSERT_EQ(values[256 * row], next);
        ASSERT_EQ(values[256 * row + 255], next);
      }
    }
    EXPECT_EQ(next, kSamples);
  }
}

TEST_F(DeviceLoaderTest, KeepsABatchThatIsStillHeld) {
  DeviceLoader loader = Open();
  std::vector<Batch> held;
  for (int i = 0; i < 5; ++i) held.push_back(std::move(**loader.Next(kPatience)));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Values(held[static_cast<size_t>(i)])[0], 4 * i);
}

TEST_F(DeviceLoaderTest, DoesNotOverwriteWhatAQueuedKernelHasYetToRead) {
  DeviceLoader loader = Open();
  std::vector<std::shared_ptr<std::vector<int>>> read;
  for (int i = 0; i < 12; ++i) {
    const auto batch = loader.Next(kPatience);
    ASSERT_TRUE(batch.ok());
    if (*batch) read.push_back(QueueKernel(**batch));  // and the batch is let go of at once
  }
  finish_();
  for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ((*read[i])[0], 4 * static_cast<int>(i % 6)) << i;
}

TEST_F(DeviceLoaderTest, StandsAfterTheBatchGivenNotTheOneAhead) {
  DeviceLoader loader = Open();
  ASSERT_TRUE(loader.Next(kPatience).ok());
  const LoaderState state = loader.State();
  EXPECT_EQ(state.consumed, 4u);
  DeviceLoader other = Open();
  ASSERT_TRUE(other.Restore(state).ok());
  const auto batch = other.Next(kPatience);
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(Values(**batch)[0], 4);
}

TEST_F(DeviceLoaderTest, GivesBackWhatItTookFromTheDriver) {
  const int before = live_();
  {
    DeviceLoader loader = Open();
    for (int i = 0; i < 9; ++i) ASSERT_TRUE(loader.Next(kPatience).ok());
    EXPECT_GT(live_(), before);
  }
  // A thread of the loader that was just ending may be the last to let go.
  for (int i = 0; i < 20'000 && live_() != before; ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(live_(), before);
}

TEST_F(DeviceLoaderTest, SaysWhyThereIsNoDevice) {
  setenv("FULLBORE_CUDA", "libno-such-cuda.so", 1);
  const auto library = DeviceLoader::Open(options_, 0);
  ASSERT_FALSE(library.ok());
  EXPECT_THAT(library.error().text, HasSubstr("libno-such-cuda.so"));
  setenv("FULLBORE_CUDA", FAKE_CUDA, 1);
  const auto ordinal = DeviceLoader::Open(options_, 3);
  ASSERT_FALSE(ordinal.ok());
  EXPECT_THAT(ordinal.error().text, HasSubstr("no CUDA device 3"));
}

}  // namespace
}  // namespace fullbore::loader::cuda
