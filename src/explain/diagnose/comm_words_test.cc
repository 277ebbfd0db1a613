#include "explain/diagnose/comm_words.h"

#include <gmock/gmock.h>

namespace fullbore::diagnose {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

// A rank that trains, and whose collectives of this kind cost most.
record::RankInfo With(const char* kind, const char* wrapper = "", bool of_gradients = true) {
  record::RankInfo info;
  info.facts["optimizer"] = "\"AdamW\"";
  if (*wrapper != '\0') info.facts["distributed"] = "\"" + std::string(wrapper) + "\"";
  record::CollectiveStats most, little;
  most.kind = kind;
  most.exposed_ns = 900;
  most.of_gradients = of_gradients;
  little.kind = "broadcast";
  little.exposed_ns = 100;
  info.tables.emplace().collectives = {most, little};
  return info;
}

std::vector<std::string> Fixes(const record::RankInfo& info) {
  return FixesOf(ExchangeOf(info), ProgramOf(info));
}

TEST(CommWordsTest, GradientsOfDdpAreSentInItsBuckets) {
  for (const char* wrapper : {"DistributedDataParallel", ""}) {
    const auto fixes = Fixes(With("all_reduce", wrapper));
    EXPECT_THAT(fixes, Contains(HasSubstr("no_sync()"))) << wrapper;
    EXPECT_THAT(fixes, Contains(HasSubstr("bucket_cap_mb"))) << wrapper;
  }
}

TEST(CommWordsTest, FsdpIsSpokenToInItsOwnWords) {
  EXPECT_THAT(Fixes(With("_allgather_base", "FullyShardedDataParallel")),
              Contains(HasSubstr("BackwardPrefetch")));
  EXPECT_THAT(Fixes(With("_reduce_scatter_base", "fully_shard")),
              Contains(HasSubstr("reshard_after_forward=False")));
  EXPECT_THAT(Fixes(With("all_gather", "DeepSpeed")), Contains(HasSubstr("overlap_comm")));
  for (const char* wrapper : {"FullyShardedDataParallel", "fully_shard", "DeepSpeed", ""}) {
    const auto fixes = Fixes(With("reduce_scatter", wrapper));
    EXPECT_THAT(fixes, Each(Not(HasSubstr("bucket_cap_mb")))) << wrapper;
    EXPECT_THAT(fixes, Each(Not(HasSubstr("ddp_comm_hooks")))) << wrapper;
  }
}

TEST(CommWordsTest, WhatTheModelItselfSendsIsNotDdpsToChange) {
  for (const record::RankInfo& info :
       {With("all_reduce", "DistributedDataParallel", false), With("all_to_allv"), With("send_recv"),
        With("send", "DistributedDataParallel")}) {
    for (const char* words : {"DDP", "no_sync", "ddp_comm_hooks", "DistributedDataParallel"})
      EXPECT_THAT(Fixes(info), Each(Not(HasSubstr(words)))) << info.tables->collectives[0].kind;
  }
  EXPECT_EQ(ExchangeOf(With("all_reduce", "", false)), Exchange::kActivations);
  EXPECT_EQ(ExchangeOf(With("all_to_allv")), Exchange::kAllToAll);
  EXPECT_EQ(ExchangeOf(With("recv")), Exchange::kPipeline);
}

TEST(CommWordsTest, WhereNothingTrainsAllReducesAreNotTakenForGradients) {
  record::RankInfo info = With("all_reduce");
  info.facts.clear();
  EXPECT_EQ(ExchangeOf(info), Exchange::kUnknown);
  EXPECT_THAT(Fixes(info), Each(Not(HasSubstr("no_sync"))));
}

TEST(CommWordsTest, WithoutARecordOfTheDeviceTheWrapperTellsWhatIsMeant) {
  record::RankInfo info;
  EXPECT_EQ(ExchangeOf(info), Exchange::kGradients);
  info.facts["distributed"] = "\"DistributedDataParallel\"";
  EXPECT_EQ(ExchangeOf(info), Exchange::kGradients);
  for (const char* sharding : {"\"FullyShardedDataParallel\"", "\"fully_shard\""}) {
    info.facts["distributed"] = sharding;
    EXPECT_EQ(ExchangeOf(info), Exchange::kSharded) << sharding;
  }
}

TEST(CommWordsTest, ExchangingOnceIsSaidInTheCallThatTheWrapperUnderstands) {
  const auto words = [](const char* wrapper) {
    record::RankInfo info;
    info.facts["distributed"] = "\"" + std::string(wrapper) + "\"";
    return ToExchangeOnce({8, 0.875, true}, ProgramOf(info));
  };
  for (const char* wrapper : {"DistributedDataParallel", "FullyShardedDataParallel"})
    EXPECT_THAT(words(wrapper), HasSubstr("model.no_sync()")) << wrapper;
  EXPECT_THAT(words("fully_shard"), HasSubstr("model.set_requires_gradient_sync(False)"));
  EXPECT_THAT(words("fully_shard"), Not(HasSubstr("no_sync()"))) << "there it does nothing";
  EXPECT_THAT(words("fully_shard"), HasSubstr("memory"));
  EXPECT_THAT(words("DistributedDataParallel"), Not(HasSubstr("memory")));
}

}  // namespace
}  // namespace fullbore::diagnose
