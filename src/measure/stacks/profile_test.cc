#include "measure/stacks/profile.h"

#include <gtest/gtest.h>

namespace fullbore::stacks {
namespace {

TEST(ProfileTest, NamesTheModuleOfInstalledAndFrozenAndStandardFiles) {
  EXPECT_EQ(ModuleOf("/v/lib/python3.11/site-packages/torch/optim/sgd.py"), "torch.optim.sgd");
  EXPECT_EQ(ModuleOf("/v/lib/python3.8/site-packages/torch/cuda/__init__.py"), "torch.cuda");
  EXPECT_EQ(ModuleOf("/usr/lib/python3.13/multiprocessing/queues.py"), "multiprocessing.queues");
  EXPECT_EQ(ModuleOf("<frozen importlib._bootstrap>"), "importlib._bootstrap");
  EXPECT_EQ(ModuleOf("/home/u/fullbore/data/loader.py"), "fullbore.data.loader");
  EXPECT_EQ(ModuleOf("/home/u/train.py"), "");
}

TEST(ProfileTest, ReadsThreadsWithTheirSamplesInOrder) {
  const auto profile = ReadSpeedscope(R"({"shared": {"frames": [
      {"name": "<module>", "file": "/u/train.py", "line": 3}, {"name": "SGD.step", "file": "/u/site-packages/torch/optim/sgd.py", "line": 7}]},
      "profiles": [{"name": "Process 12 Thread 34 \"MainThread\"", "type": "sampled", "samples": [[0], [0, 1], []]}]})");
  ASSERT_TRUE(profile.ok()) << profile.error().text;
  ASSERT_EQ(profile->threads.size(), 1U);
  EXPECT_EQ(profile->threads[0].pid, 12);
  EXPECT_EQ(profile->threads[0].name, "MainThread");
  EXPECT_EQ(profile->threads[0].samples, (std::vector<Stack>{{0}, {0, 1}}));
  EXPECT_TRUE(profile->frames[0].is_user);
  EXPECT_EQ(profile->frames[1].function, "step");
  EXPECT_FALSE(profile->frames[1].is_user);
}

TEST(ProfileTest, RefusesWhatIsNoProfileWithTheNextStep) {
  for (const char* text : {"", "[]", "{}", R"({"shared": {"frames": [{}]}, "profiles": []})"}) {
    const auto profile = ReadSpeedscope(text);
    ASSERT_FALSE(profile.ok()) << text;
    EXPECT_NE(profile.error().hint.find("py-spy"), std::string::npos);
  }
}

TEST(ProfileTest, LeavesOutFramesThatTheProfileDoesNotHave) {
  const auto profile =
      ReadSpeedscope(R"({"shared": {"frames": []}, "profiles": [{"name": "Process 1", "samples": [[99]]}]})");
  ASSERT_TRUE(profile.ok());
  EXPECT_TRUE(profile->threads[0].samples.empty());
}

}  // namespace
}  // namespace fullbore::stacks
