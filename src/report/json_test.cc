#include "report/json.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/printable.h"
#include "base/text.h"
#include "report/testing/samples.h"

namespace fullbore::report {
namespace {

using Json = nlohmann::ordered_json;

TEST(JsonTest, CarriesTheFiguresOfTheDiagnosis) {
  const testing::Sample sample = testing::InputBound();
  const Json report = ToJson(sample.diagnosis);
  EXPECT_EQ(report["schema"], "fullbore.report/1");
  EXPECT_EQ(report["window"]["steps"], sample.diagnosis.steps);
  EXPECT_EQ(report["throughput"]["samples_per_s"], *sample.diagnosis.samples_per_s);
  EXPECT_EQ(report["throughput"]["ci95_samples_per_s"][1], *sample.diagnosis.samples_per_s_high);
  EXPECT_EQ(report["step_time"]["mean_ns"], sample.diagnosis.mean_step_ns);
  EXPECT_EQ(report["step_time"]["shares_of"], "device");
  EXPECT_EQ(report["ranks"][0]["device"], "cuda:0");
  EXPECT_EQ(report["resources"]["gpu_sm_active{gpu=0}"]["unit"], "ratio");
  EXPECT_EQ(report["would_not_help"][0]["what"], "a faster disk");
  EXPECT_EQ(report["not_judged"][0]["needs"], "a run on several ranks");

  const Json& verdict = report["findings"][0];
  EXPECT_EQ(verdict["id"], "input-bound");
  EXPECT_EQ(verdict["severity"], "critical");
  EXPECT_EQ(verdict["speedup"]["low"], 1.63);
  EXPECT_EQ(verdict["where"][0]["line"], 57);
  EXPECT_EQ(verdict["evidence"][2]["series"], "process_cpu{role=loader}");
}

TEST(JsonTest, SharesSumToOne) {
  double sum = 0;
  const Json report = ToJson(testing::Straggler().diagnosis);
  for (const auto& share : report["step_time"]["shares"]) sum += share.get<double>();
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(JsonTest, WhatAnEngineServesIsToldByItsPhases) {
  diagnose::Diagnosis d;
  d.steps = 10;
  EXPECT_FALSE(ToJson(d).contains("serving")) << "a training";
  d.engine = "vLLM";
  d.served = {{"prefill", 2, 0.4, 20480.0, 4096.0}, {"decode", 8, 0.6, std::nullopt, std::nullopt}};
  const Json serving = ToJson(d)["serving"];
  EXPECT_EQ(serving["engine"], "vLLM");
  EXPECT_EQ(serving["phases"][0]["tokens_per_s"], 20480);
  EXPECT_FALSE(serving["phases"][1].contains("tokens_per_s"));
}

TEST(JsonTest, UnknownIsAbsent) {
  diagnose::Diagnosis d;
  d.steps = 1;
  d.ranks.resize(1);
  d.resources["disk_read"].max = std::nan("");
  d.findings.resize(1);
  const Json report = ToJson(d);
  EXPECT_FALSE(report.contains("exit_status"));
  EXPECT_FALSE(report.contains("stage"));
  EXPECT_FALSE(report["throughput"].contains("samples_per_s"));
  EXPECT_FALSE(report["ranks"][0].contains("busy_ns"));
  EXPECT_FALSE(report["resources"]["disk_read"].contains("max"));
  EXPECT_FALSE(report["findings"][0].contains("speedup")) << "no prediction was made";
}

TEST(JsonTest, WithoutStepsThereIsNoStepTime) {
  const Json report = ToJson(testing::NoTraining().diagnosis);
  EXPECT_FALSE(report.contains("step_time"));
  EXPECT_FALSE(report.contains("throughput"));
  EXPECT_EQ(report["window"]["steps"], 0);
}

TEST(JsonTest, IdleIsThePartOfTheSpanThatIsNotBusy) {
  diagnose::Diagnosis d;
  d.ranks.resize(1);
  d.ranks[0].span_ns = 1'000;
  d.ranks[0].busy_ns = 300;
  d.ranks[0].kernel_class_ns["elementwise"] = 20;
  const Json rank = ToJson(d)["ranks"][0];
  EXPECT_EQ(rank["idle_ns"], 700);
  EXPECT_EQ(rank["kernel_classes"]["elementwise"], 20);
  EXPECT_FALSE(rank.contains("shares"));
}

TEST(JsonTest, CollectivesCarryWhatIsKnownAboutThem) {
  diagnose::Diagnosis d;
  d.ranks.resize(2);
  diagnose::CollectiveSummary calls;
  calls.kind = "all_reduce";
  calls.count = 3;
  calls.sum_ns = 500;
  calls.wait_ns = 200;
  calls.bus_bandwidth = 12e9;
  d.ranks[0].collectives.push_back(calls);
  const Json ranks = ToJson(d)["ranks"];
  const Json& collective = ranks[0]["collectives"][0];
  EXPECT_EQ(collective["kind"], "all_reduce");
  EXPECT_EQ(collective["wait_ns"], 200);
  EXPECT_EQ(collective["bus_bandwidth"], 12e9);
  EXPECT_FALSE(collective.contains("bytes"));
  EXPECT_FALSE(collective.contains("group"));
  EXPECT_FALSE(ranks[1].contains("collectives"));
}

TEST(JsonTest, FactsAreJsonValuesAndBrokenOnesAreStrings) {
  diagnose::Diagnosis d;
  d.facts = {{"batch_shape", "[128,3]"}, {"odd", "{not json"}};
  const Json facts = ToJson(d)["facts"];
  EXPECT_EQ(facts["batch_shape"][0], 128);
  EXPECT_EQ(facts["odd"], "{not json");
}

TEST(JsonTest, TextIsAlwaysUtf8) {
  const std::string text = ToJsonText(testing::HostileTexts().diagnosis);
  EXPECT_TRUE(Json::accept(text));
  EXPECT_THAT(text, ::testing::HasSubstr("\xef\xbf\xbd")) << "U+FFFD for the broken byte";
}

TEST(JsonTest, IsSafeToShowOnATerminal) {
  const diagnose::Diagnosis diagnosis = testing::HostileTexts().diagnosis;
  const std::string text = ToJsonText(diagnosis);
  for (const std::string_view line : Split(text, '\n')) EXPECT_EQ(Printable(line, true), line);
  EXPECT_THAT(Json::parse(text)["findings"][0]["change"].get<std::string>(), ::testing::HasSubstr("\u202e"));
}

}  // namespace
}  // namespace fullbore::report
