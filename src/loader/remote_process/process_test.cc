// The server is this very program, started with --serve.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/testing/scratch_directory.h"
#include "loader/remote_process/client.h"
#include "loader/remote_process/server.h"

namespace fullbore::loader {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// One black pixel.
constexpr unsigned char kPng[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0x3a, 0x7e, 0x9b, 0x55, 0x00,
    0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x60, 0x00, 0x00, 0x00, 0x02, 0x00, 0x01,
    0x48, 0xaf, 0xa4, 0x71, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

constexpr int kImages = 20, kBatch = 4;

class RemoteProcess : public ::testing::Test {
 protected:
  RemoteProcess() {
    const std::string_view png(reinterpret_cast<const char*>(kPng), sizeof kPng);
    for (int i = 0; i < kImages; ++i) {
      directory_.Write((i % 2 ? "odd/" : "even/") + std::to_string(100 + i) + ".png", png);
    }
    options_.source.paths = {directory_.path()};
    options_.transforms = {Resize{.height = 8, .width = 8}};
    options_.batch_size = kBatch;
    options_.dtype = DType::kUInt8;
    process_.command = {"/proc/self/exe", "--serve"};
  }

  RemoteLoader Opened() {
    auto loader = RemoteLoader::Open(options_, process_);
    if (!loader) ADD_FAILURE() << ToString(loader.error());
    return std::move(*loader);
  }

  ScratchDirectory directory_;
  LoaderOptions options_;
  ProcessOptions process_;
};

Batch Taken(RemoteLoader& loader) {
  auto batch = loader.Next();
  EXPECT_TRUE(batch.ok()) << (batch.ok() ? "" : ToString(batch.error()));
  EXPECT_TRUE(batch->has_value());
  return std::move(**batch);
}

std::vector<uint64_t> RestOfEpoch(RemoteLoader& loader) {
  std::vector<uint64_t> ids;
  for (;;) {
    auto batch = loader.Next();
    EXPECT_TRUE(batch.ok()) << (batch.ok() ? "" : ToString(batch.error()));
    if (!batch.ok() || !*batch) return ids;
    ids.insert(ids.end(), (*batch)->sample_ids.begin(), (*batch)->sample_ids.end());
  }
}

std::vector<uint64_t> IdsInThisProcess(const LoaderOptions& options) {
  auto loader = Loader::Open(options);
  std::vector<uint64_t> ids;
  for (auto batch = loader->Next(); batch.ok() && *batch; batch = loader->Next())
    ids.insert(ids.end(), (*batch)->sample_ids.begin(), (*batch)->sample_ids.end());
  return ids;
}

TEST_F(RemoteProcess, GivesWhatALoaderInThisProcessGives) {
  RemoteLoader loader = Opened();
  EXPECT_THAT(loader.class_names(), ElementsAre("even", "odd"));
  EXPECT_EQ(loader.samples(), kImages);
  EXPECT_EQ(loader.batches_per_epoch(), kImages / kBatch);
  const Batch batch = Taken(loader);
  ASSERT_THAT(batch.fields, SizeIs(2));
  EXPECT_THAT(batch.fields[0].shape, ElementsAre(kBatch, 3, 8, 8));
  const auto* labels = static_cast<const int64_t*>(batch.fields[1].data);
  for (int i = 0; i < kBatch; ++i)
    EXPECT_EQ(labels[i], batch.sample_ids[static_cast<size_t>(i)] < kImages / 2 ? 0 : 1);
  std::vector<uint64_t> ids = batch.sample_ids;
  const std::vector<uint64_t> rest = RestOfEpoch(loader);
  ids.insert(ids.end(), rest.begin(), rest.end());
  EXPECT_EQ(ids, IdsInThisProcess(options_));
}

TEST_F(RemoteProcess, KilledProcessIsRestartedAtTheExactPosition) {
  const std::vector<uint64_t> expected = IdsInThisProcess(options_);
  RemoteLoader loader = Opened();
  std::vector<uint64_t> ids = Taken(loader).sample_ids;
  const Batch kept = Taken(loader);
  ids.insert(ids.end(), kept.sample_ids.begin(), kept.sample_ids.end());
  (void)loader.TakeMessages();
  ASSERT_EQ(kill(loader.pid(), SIGKILL), 0);
  const std::vector<uint64_t> rest = RestOfEpoch(loader);
  ids.insert(ids.end(), rest.begin(), rest.end());
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(static_cast<const uint8_t*>(kept.fields[0].data)[0],
            static_cast<const uint8_t*>(kept.fields[0].data)[1]);
  int restarts_told = 0;
  for (const Message& message : loader.TakeMessages())
    restarts_told += message.text.find("killed by signal 9") != std::string::npos;
  EXPECT_EQ(restarts_told, 1);
}

TEST_F(RemoteProcess, GivesUpAfterTheRestartsAllowed) {
  process_.max_restarts = 1;
  RemoteLoader loader = Opened();
  (void)Taken(loader);
  kill(loader.pid(), SIGKILL);
  (void)Taken(loader);
  kill(loader.pid(), SIGKILL);
  const auto batch = loader.Next();
  ASSERT_FALSE(batch.ok());
  EXPECT_THAT(batch.error().text, HasSubstr("restarted 1 times"));
}

TEST_F(RemoteProcess, BatchesOutliveTheLoaderAndTheProcess) {
  std::optional<Batch> batch;
  pid_t pid = 0;
  {
    RemoteLoader loader = Opened();
    batch = Taken(loader);
    pid = loader.pid();
  }
  EXPECT_EQ(kill(pid, 0), -1) << "the process is still there";
  EXPECT_EQ(static_cast<const int64_t*>(batch->fields[1].data)[0],
            batch->sample_ids[0] < kImages / 2 ? 0 : 1);
}

TEST_F(RemoteProcess, RestoresTheWholeState) {
  const std::vector<uint64_t> expected = IdsInThisProcess(options_);
  RemoteLoader first = Opened();
  std::vector<uint64_t> ids = Taken(first).sample_ids;
  const LoaderState state = first.State();
  RemoteLoader second = Opened();
  ASSERT_TRUE(second.Restore(state).ok());
  const std::vector<uint64_t> rest = RestOfEpoch(second);
  ids.insert(ids.end(), rest.begin(), rest.end());
  EXPECT_EQ(ids, expected);
}

TEST_F(RemoteProcess, ABatchIsReleasedWhileItsProcessWaitsToSend) {
  // More batches than a socket has room to say so, and then answers that are larger than it, too.
  constexpr int kSmall = 600;
  const std::string list = directory_.path() + "/list.csv";
  std::ofstream rows(list);
  rows << "path,label,caption\n";
  for (int i = 0; i < kSmall + 40; ++i)
    rows << "even/100.png," << i << ',' << std::string(i < kSmall ? 1 : 1 << 20, 'x') << '\n';
  rows.close();
  options_.source.paths = {list};
  options_.source.fields = {"path", "caption"};
  options_.batch_size = 1;
  options_.shuffle = false;
  RemoteLoader loader = Opened();
  std::vector<Batch> kept;
  while (kept.size() < kSmall) kept.push_back(Taken(loader));
  for (auto batch = loader.Next(milliseconds(0)); batch.ok(); batch = loader.Next(milliseconds(0)))
    kept.push_back(std::move(**batch));
  std::this_thread::sleep_for(milliseconds(100));  // usually the answer is under way now, and nobody reads it
  kept.clear();
  EXPECT_EQ(Taken(loader).fields[1].items[0].size(), size_t{1} << 20);
}

TEST_F(RemoteProcess, ASignalDuringAWaitDoesNotMixUpRequests) {
  RemoteLoader loader = Opened();
  const pid_t first = loader.pid();
  const auto before = signal(SIGALRM, [](int) {});
  const itimerval often = {{0, 100}, {0, 100}};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (uint64_t epoch = 0; epoch < 300; ++epoch) {
    (void)loader.Next(milliseconds(0));
    loader.SetEpoch(epoch);
  }
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  signal(SIGALRM, before);
  EXPECT_EQ(loader.pid(), first);
  EXPECT_THAT(RestOfEpoch(loader), SizeIs(kImages));
}

TEST_F(RemoteProcess, SaysWhatCannotBeOpened) {
  options_.source.paths = {"/nowhere/at/all"};
  const auto loader = RemoteLoader::Open(options_, process_);
  ASSERT_FALSE(loader.ok());
  EXPECT_EQ(loader.error().code, ErrorCode::kNotFound);
}

TEST_F(RemoteProcess, SaysThatACommandDoesNotServe) {
  process_.command = {"/bin/false"};
  const auto loader = RemoteLoader::Open(options_, process_);
  ASSERT_FALSE(loader.ok());
  EXPECT_THAT(loader.error().text, HasSubstr("gone"));
}

}  // namespace
}  // namespace fullbore::loader

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--serve") == 0) {
    fullbore::loader::ServeLoader(fullbore::UniqueFd(std::atoi(argv[2])), nullptr);
    return 0;
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
