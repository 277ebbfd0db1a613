#include "tune/knob/settings.h"

#include <gmock/gmock.h>

#include "tune/knob/knob.h"

namespace fullbore::tune {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(SettingsTest, ValuesHaveTheTypeThatTheyLookLike) {
  EXPECT_EQ(ParseSetting("num_workers=4")->second, json(4));
  EXPECT_EQ(ParseSetting("pin_memory=true")->second, json(true));
  EXPECT_EQ(ParseSetting("bucket_cap_mb=12.5")->second, json(12.5));
  EXPECT_EQ(ParseSetting("precision=bf16")->second, json("bf16"));
  EXPECT_EQ(ParseSetting("cpu_affinity=0-3")->second, json("0-3"));
}

TEST(SettingsTest, ANameWithoutAValueIsAnError) {
  for (const char* text : {"num_workers", "=4", "num_workers=", ""})
    EXPECT_FALSE(ParseSetting(text).ok()) << text;
}

TEST(SettingsTest, SeveralValuesKeepTheirOrder) {
  const auto values = ParseValues("num_workers=2,0, 4");
  ASSERT_TRUE(values.ok());
  EXPECT_THAT(values->second, ElementsAre(json(2), json(0), json(4)));
}

TEST(SettingsTest, ThereIsAtLeastOneValueToTry) {
  EXPECT_FALSE(ParseValues("batch_size=,").ok());
  EXPECT_TRUE(ParseValues("batch_size=8,").ok());
}

TEST(SettingsTest, WhatStandsInTheCommandIsPutThereAndTheRestIsForTheHook) {
  const auto made = Substitute({"train", "--batch={batch}", "{batch}x{batch}", "{other}"},
                               {{"batch", 64}, {"num_workers", 2}});
  EXPECT_THAT(made.command, ElementsAre("train", "--batch=64", "64x64", "{other}"));
  EXPECT_EQ(made.for_hook, (Settings{{"num_workers", 2}}));
}

TEST(SettingsTest, AValueThatLooksLikeItsOwnPlaceholderEndsTheReplacing) {
  EXPECT_THAT(Substitute({"{x}"}, {{"x", "a{x}"}}).command, ElementsAre("a{x}"));
}

TEST(KnobTest, EachSaysWhichValuesAreLegal) {
  EXPECT_EQ(KnobNamed("num_workers")->WhyNotLegal(0), "");
  EXPECT_NE(KnobNamed("num_workers")->WhyNotLegal(-1), "");
  EXPECT_NE(KnobNamed("num_workers")->WhyNotLegal("many"), "");
  EXPECT_NE(KnobNamed("batch_size")->WhyNotLegal(0), "");
  EXPECT_NE(KnobNamed("pin_memory")->WhyNotLegal(1), "");
  EXPECT_EQ(KnobNamed("precision")->WhyNotLegal("bf16"), "");
  EXPECT_NE(KnobNamed("precision")->WhyNotLegal("int8"), "");
  EXPECT_EQ(KnobNamed("cpu_affinity")->WhyNotLegal("0-1,3"), "");
  EXPECT_EQ(KnobNamed("cpu_affinity")->WhyNotLegal(1), "");
  EXPECT_NE(KnobNamed("cpu_affinity")->WhyNotLegal("3-1"), "");
  EXPECT_EQ(KnobNamed("nothing"), nullptr);
}

TEST(KnobTest, NoneTakesWhatWouldBringTheMachineDown) {
  for (const char* name : {"num_workers", "prefetch_factor", "batch_size", "accumulate", "intraop_threads",
                           "bucket_cap_mb", "cpu_affinity"}) {
    EXPECT_NE(KnobNamed(name)->WhyNotLegal(1'000'000'000), "") << name;
    EXPECT_EQ(KnobNamed(name)->WhyNotLegal(1), "") << name;
  }
  EXPECT_NE(KnobNamed("cpu_affinity")->WhyNotLegal("0-99999999"), "");
  EXPECT_NE(KnobNamed("bucket_cap_mb")->WhyNotLegal(ParseSetting("x=inf")->second), "");
}

TEST(KnobTest, EachIsWrittenAsAPersonWouldWriteIt) {
  EXPECT_EQ(KnobNamed("num_workers")->in_code(4), "DataLoader(num_workers=4)");
  EXPECT_EQ(KnobNamed("persistent_workers")->in_code(true), "DataLoader(persistent_workers=True)");
  EXPECT_EQ(KnobNamed("bucket_cap_mb")->in_code(50), "DistributedDataParallel(bucket_cap_mb=50)");
}

TEST(KnobTest, ANameStandsForOneOrForSeveral) {
  EXPECT_THAT(KnobsCalled("num_workers"), ElementsAre("num_workers"));
  EXPECT_THAT(KnobsCalled("workers"), ElementsAre("num_workers"));
  EXPECT_THAT(KnobsCalled("precision"), ElementsAre("precision", "tf32"));
  EXPECT_THAT(KnobsCalled("loader"),
              ElementsAre("fast_data", "num_workers", "persistent_workers", "pin_memory"))
      << "what the search turns of it";
  EXPECT_EQ(KnobsCalled("all").size(), AllKnobs().size());
  for (const char* none : {"", "worker", "Loader"}) EXPECT_THAT(KnobsCalled(none), IsEmpty()) << none;
}

TEST(KnobTest, WhatChangesTrainingResultsIsTurnedOnlyWhenAskedFor) {
  for (const char* name : {"batch_size", "precision", "tf32"})
    EXPECT_EQ(KnobNamed(name)->searched, Searched::kIfAsked) << name;
  for (const Knob& knob : AllKnobs()) {
    if (knob.searched != Searched::kIfAsked) continue;
    EXPECT_NE(knob.changes, "") << knob.name;
  }
}

}  // namespace
}  // namespace fullbore::tune
