#include "record/plausible.h"

#include <gmock/gmock.h>

namespace fullbore::record {
namespace {

using Facts = std::map<std::string, std::string>;
using ::testing::ElementsAre;
using ::testing::Pair;

bool IsLeftOut(const std::string& name, const std::string& text) {
  Facts facts = {{name, text}};
  const bool left_out = LeaveOutImplausible(facts);
  EXPECT_EQ(left_out, facts.empty());
  return left_out;
}

TEST(PlausibleTest, WhatAMachineCanHaveStays) {
  EXPECT_FALSE(IsLeftOut("cores", "192"));
  EXPECT_FALSE(IsLeftOut("memory_bytes", "2199023255552"));
  EXPECT_FALSE(IsLeftOut("torch_threads", "-1")) << "as many as there are";
  EXPECT_FALSE(IsLeftOut("omp_num_threads", "\"8\"")) << "of an environment variable";
  EXPECT_FALSE(IsLeftOut("hostname", "node7"));
}

TEST(PlausibleTest, ANumberThatNoMachineHasGoes) {
  EXPECT_TRUE(IsLeftOut("cores", "1e12"));
  EXPECT_TRUE(IsLeftOut("cores", "-2"));
  EXPECT_TRUE(IsLeftOut("cores", "nan"));
  EXPECT_TRUE(IsLeftOut("omp_num_threads", "\"999999999\""));
  EXPECT_TRUE(IsLeftOut("of_any_name", "1e300"));
}

TEST(PlausibleTest, NumbersWithinListsAndObjectsCountToo) {
  EXPECT_FALSE(IsLeftOut("first_losses", "[0.7, 0.6]"));
  EXPECT_TRUE(IsLeftOut("first_losses", "[0.7, 1e300]"));
  EXPECT_TRUE(IsLeftOut("model", R"({"layers": {"deep": -1e300}})"));
}

TEST(PlausibleTest, ATextBeyondAllMeasureGoes) {
  EXPECT_FALSE(IsLeftOut("note", std::string(1 << 20, 'x')));
  EXPECT_TRUE(IsLeftOut("note", std::string((1 << 20) + 1, 'x')));
}

TEST(PlausibleTest, TheOthersAreNotTouched) {
  Facts facts = {{"cores", "1e12"}, {"hostname", "node7"}};
  EXPECT_TRUE(LeaveOutImplausible(facts));
  EXPECT_THAT(facts, ElementsAre(Pair("hostname", "node7")));
}

}  // namespace
}  // namespace fullbore::record
