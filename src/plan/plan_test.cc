// The cases of practice (testing/practice.h), what holds for every plan, and what is said where nothing can be.
#include "plan/plan.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "explain/replay/testing/made_graph.h"
#include "plan/market_file.h"
#include "plan/plan_json.h"
#include "plan/testing/practice.h"

namespace fullbore::plan {
namespace {

using record::Dependency;
using record::Lane;
using record::StepGraph;
using record::Work;
using testing::AT4;
using testing::AV100;
using ::testing::HasSubstr;
using testing::Made;
using testing::RecordedOn;
using testing::RowOf;
using testing::Shop;

Request For(std::vector<std::string> devices, std::vector<int64_t> gpus, Market market = {}) {
  Request request;
  for (const std::string& name : devices) request.devices.push_back(roofline::DeviceMeant(name));
  request.gpus = std::move(gpus);
  request.market = std::move(market);
  return request;
}

double Expected(const Plan& plan, std::string_view device, int64_t gpus) {
  const Row* row = RowOf(plan, device, gpus);
  return row == nullptr ? 0 : row->estimate.per_s.expected;
}

// ---- the cases of practice ----

TEST(PracticeTest, TheT4IsBoundByItselfAndItsRecordedRateIsItsRate) {
  const Plan plan = PlanFor({RecordedOn(AT4())}, For({"t4"}, {1}));
  ASSERT_EQ(plan.rows.size(), 1u);
  EXPECT_NEAR(plan.rows[0].estimate.per_s.expected, 260, 6);
  EXPECT_EQ(plan.rows[0].estimate.binds, Pipe::kTraining);
  EXPECT_TRUE(plan.rows[0].measured);
}

TEST(PracticeTest, TwoT4OnTheSameFourCoresAreBoundByTheLoader) {
  const Plan plan = PlanFor({RecordedOn(AT4())}, For({"t4"}, {2}));
  const Estimate& two = RowOf(plan, "T4", 2)->estimate;
  RecordProperty("images_per_s", std::to_string(two.per_s.expected));
  EXPECT_NEAR(two.per_s.expected, 440, 0.12 * 440);
  EXPECT_LT(two.per_s.expected, 500) << "not 520";
  EXPECT_LE(two.per_s.low, 440);
  EXPECT_GE(two.per_s.high, 440);
  EXPECT_TRUE(two.binds == Pipe::kCores || two.binds == Pipe::kLoader);
  EXPECT_GT(*two.cores_needed, 4);
}

TEST(PracticeTest, UnlessCoresAreAdded) {
  const Plan plan = PlanFor({RecordedOn(AT4())}, For({"t4"}, {2}, Shop()));
  const Estimate& two = RowOf(plan, "T4", 2)->estimate;
  EXPECT_EQ(two.cores.logical, 8);
  EXPECT_GT(two.per_s.expected, 480);
  EXPECT_EQ(two.binds, Pipe::kTraining);
}

TEST(PracticeTest, AV100IsThreeT4AtSevenTimesThePriceAndWorseValue) {
  const Request request = For({"t4", "v100"}, {1, 2}, Shop());
  const Plan plan = PlanFor({RecordedOn(AT4()), RecordedOn(AV100())}, request);
  EXPECT_NEAR(Expected(plan, "V100", 1) / Expected(plan, "T4", 1), 760 / 260.0, 0.2);
  RecordProperty("said", Sentences(plan, request).front());
  EXPECT_GT(RowOf(plan, "V100", 1)->per_unit->expected, 2 * RowOf(plan, "T4", 2)->per_unit->expected);
  ASSERT_TRUE(plan.choice);
  EXPECT_EQ(plan.rows[plan.choice->row].estimate.setup.device_name, "T4");
  ASSERT_TRUE(plan.choice->versus);
  EXPECT_EQ(plan.rows[*plan.choice->versus].estimate.setup.device_name, "V100 SXM2");
  EXPECT_THAT(Sentences(plan, request).front(),
              HasSubstr("% less per epoch than 1x V100 SXM2 with 12 cores"));
  EXPECT_EQ(NameOf(plan.rows[plan.choice->row]), "2x T4 with 8 cores") << "as cheap as one, and sooner done";
}

TEST(PracticeTest, WhereTheV100IsNeededForItsSpeedItIsTaken) {
  Request request = For({"t4", "v100"}, {1, 2}, Shop());
  request.goal.need_per_s = 600;
  const Plan plan = PlanFor({RecordedOn(AT4()), RecordedOn(AV100())}, request);
  ASSERT_TRUE(plan.choice);
  EXPECT_EQ(plan.rows[plan.choice->row].estimate.setup.device_name, "V100 SXM2");
  EXPECT_THAT(Sentences(plan, request).front(), HasSubstr("For 600 samples/s: the cheapest is 1x V100 SXM2"));
}

TEST(PracticeTest, OfTwoBatchesThatDoAsWellTheSmallerIsTheBetterChoice) {
  Made smaller = AT4();
  smaller.batch = 64;
  smaller.images_per_s = 254;
  const Request request = For({"t4"}, {1}, Shop());
  const Plan plan = PlanFor({RecordedOn(AT4()), RecordedOn(smaller)}, request);
  ASSERT_EQ(plan.rows.size(), 2u);
  ASSERT_TRUE(plan.choice);
  EXPECT_EQ(plan.recorded[plan.rows[plan.choice->row].recording].batch, 64);
  ASSERT_TRUE(plan.choice->larger_batch);
  const auto sentences = Sentences(plan, request);
  EXPECT_THAT(sentences, ::testing::Contains(HasSubstr("A batch of 64 does as well as 128")));
  smaller.images_per_s = 160;  // far from it
  const Plan other = PlanFor({RecordedOn(AT4()), RecordedOn(smaller)}, request);
  EXPECT_EQ(other.recorded[other.rows[other.choice->row].recording].batch, 128);
}

// ---- predicted from the device's own work ----

// A step of `us` on a device of that name: two thirds matrix products in 16 bits with known work, the rest elementwise.
record::Recording ATrace(const char* device, bool with_shapes = true) {
  replay::testing::MadeGraph made;
  auto before = made.Add(Work::kStepEnd, 0);
  for (int step = 0; step < 3; ++step) {
    const auto launch = made.Add(Work::kLaunch, 5, {{before}});
    const auto product = made.Add(Work::kDevice, 200'000, {{launch, Dependency::kLaunch, 5, true}});
    made[product].lane = Lane::kMatmulTensor;
    made[product].task = with_shapes ? 1 : 0;
    const auto pointwise = made.Add(Work::kDevice, 100'000, {{product, Dependency::kStream}});
    made[pointwise].lane = Lane::kElementwise;
    made[pointwise].phase = record::Phase::kBackward;
    before = made.Add(Work::kStepEnd, 0, {{pointwise}});
  }
  StepGraph graph = made.Graph(300'005);
  graph.tasks.push_back({9e12, 1e9, record::Arithmetic::kFloat16});
  graph.device = roofline::DeviceMeant(device) == nullptr ? "" : roofline::DeviceMeant(device)->name;
  diagnose::testing::ARun run = diagnose::testing::ATrace(100);
  for (record::Step& step : run.rank().steps) {
    step.wall_ns = 300'005'000;
    step.share_ns = {};
    step.share_ns[Index(record::Share::kCompute)] = step.wall_ns;
    step.samples = 128;
  }
  run.rank().graph = graph;
  run.rank().facts["gpu"] = "\"" + std::string(device) + "\"";
  record::Recording recording = run;
  recording.id = "trace.json";
  recording.source = "kineto";
  return recording;
}

TEST(PlanTest, AnotherDeviceIsToldFromTheWorkOfThisOne) {
  const Plan plan = PlanFor({RecordedOf(ATrace("Tesla T4"))}, For({"t4", "v100", "h100"}, {1}));
  EXPECT_NEAR(Expected(plan, "T4", 1), 128 / 0.3, 5);
  const double times = Expected(plan, "V100", 1) / Expected(plan, "T4", 1);
  EXPECT_GT(times, 125.0 / 65) << "by its arithmetic";
  EXPECT_LT(times, 900.0 / 320) << "by its memory";
  EXPECT_GT(Expected(plan, "H100", 1), Expected(plan, "V100", 1));
  EXPECT_EQ(RowOf(plan, "V100", 1)->estimate.binds, Pipe::kDevice);
}

// The run knows its loader and its step, the window what the device did: on four cores a V100 waits for the loader.
TEST(PlanTest, AnotherDeviceIsFedByTheRunsOwnLoader) {
  const record::Recording window = ATrace("Tesla T4");
  const Recorded recorded = RecordedOf(testing::ARunOf(AT4()), &window);
  const Plan same = PlanFor({recorded}, For({"t4", "v100"}, {1}));
  EXPECT_NEAR(Expected(same, "T4", 1), 260, 8) << "as the run measured it, not as the window is";
  const Estimate& bound = RowOf(same, "V100", 1)->estimate;
  EXPECT_NEAR(bound.per_s.expected, 440, 0.12 * 440);
  EXPECT_TRUE(bound.binds == Pipe::kCores || bound.binds == Pipe::kLoader);
  const Plan fed = PlanFor({recorded}, For({"v100"}, {1}, Shop()));
  const Estimate& free = RowOf(fed, "V100", 1)->estimate;
  RecordProperty("images_per_s", std::to_string(free.per_s.expected));
  EXPECT_EQ(free.cores.logical, 12);
  EXPECT_GT(free.per_s.expected, 1.9 * 260);
  EXPECT_EQ(free.binds, Pipe::kDevice);
}

TEST(PlanTest, ADeviceWithoutUnitsForTheRecordedTypeSaysSo) {
  record::Recording trace = ATrace("NVIDIA A100-SXM4-80GB");
  const auto told = [&] {
    std::string whats;
    for (const NotTold& one : PlanFor({RecordedOf(trace)}, For({"t4", "h100"}, {1})).not_told)
      whats += one.what + "; ";
    return whats;
  };
  EXPECT_THAT(told(), ::testing::Not(HasSubstr("in float16")));
  trace.stages.front().ranks.front().graph->tasks.back().arithmetic = record::Arithmetic::kBFloat16;
  EXPECT_THAT(told(), HasSubstr("T4 in float16"));
}

TEST(PlanTest, ARecordingWithoutShapesTellsNoOtherDevice) {
  const Plan plan = PlanFor({RecordedOf(ATrace("Tesla T4", false))}, For({"v100", "a100"}, {1}));
  for (const Row& row : plan.rows) EXPECT_THAT(row.estimate.why_not, HasSubstr("no shapes"));
  EXPECT_FALSE(plan.choice);
  EXPECT_THAT(plan.not_told,
              ::testing::Contains(::testing::Field(&NotTold::command, HasSubstr("record_shapes=True"))));
}

TEST(PlanTest, AnUnknownDeviceTellsOnlyItself) {
  const Plan plan = PlanFor({RecordedOf(ATrace("Voodoo 2"))}, {});
  EXPECT_EQ(RowOf(plan, "Voodoo 2", 1)->estimate.why_not, "");
  for (const Row& row : plan.rows) {
    if (row.estimate.setup.device == nullptr) continue;
    EXPECT_THAT(row.estimate.why_not, ::testing::StartsWith("what a Voodoo 2 can do is not known"));
    EXPECT_THAT(row.estimate.would_tell, HasSubstr("fullbore run --windows"));
  }
}

TEST(PlanTest, ARunWithoutItsDevicesWorkSaysWhichRecordingWouldTell) {
  const Plan plan = PlanFor({RecordedOn(AT4())}, For({"v100"}, {1}));
  EXPECT_THAT(plan.rows.front().estimate.why_not, HasSubstr("was not recorded"));
  EXPECT_THAT(plan.not_told, ::testing::Contains(::testing::Field(
                                 &NotTold::command, "fullbore run --windows 4@100 -- python train.py")));
}

TEST(PlanTest, ARunOnACpuTellsItsLoaderAndNoDevice) {
  testing::ARun run = testing::ARunOf(AT4());
  run.rank().device = "cpu";
  run.rank().facts = {};
  const Recorded recorded = RecordedOf(run);
  EXPECT_TRUE(recorded.on_cpu);
  EXPECT_TRUE(recorded.loader);
  const Plan plan = PlanFor({recorded}, For({"t4"}, {1}));
  EXPECT_FALSE(plan.choice);
  EXPECT_THAT(plan.rows.front().estimate.why_not, HasSubstr("CPU"));
}

TEST(PlanTest, WhatDoesNotFitIsSaid) {
  record::Recording trace = ATrace("NVIDIA A100-SXM4-80GB");
  diagnose::testing::AddSeries(trace, record::Metric::kGpuProcessMemory, 40e9,
                               {{"gpu", "0"}, {"owner", "command"}});
  const Plan plan = PlanFor({RecordedOf(trace)}, For({"t4", "a100", "mi300x"}, {1}));
  EXPECT_EQ(RowOf(plan, "T4", 1)->estimate.why_not, "does not fit: 40 GB of 16 GB");
  EXPECT_EQ(RowOf(plan, "A100", 1)->estimate.why_not, "");
  EXPECT_NEAR(*RowOf(plan, "MI300X", 1)->estimate.memory_filled, 40 / 192.0, 1e-9);
}

TEST(PlanTest, TheRecordedDeviceHasWhatWasSeenUnlessTheFileSaysOtherwise) {
  record::Recording trace = ATrace("NVIDIA A100-SXM4-80GB");
  diagnose::testing::AddSeries(trace, record::Metric::kGpuProcessMemory, 81e9,
                               {{"gpu", "0"}, {"owner", "command"}});
  const auto why_not = [&](const std::string& more) {
    const std::string machine = "[[machine]]\nname = \"x\"\ndevice = \"a100\"\ncores = 4\n";
    const Plan plan = PlanFor({RecordedOf(trace)}, For({"a100"}, {1}, Shop(machine + more)));
    return RowOf(plan, "A100", 1)->estimate.why_not;
  };
  EXPECT_EQ(why_not(""), "") << "a data sheet's gigabytes are rounded";
  EXPECT_EQ(why_not("device_memory_gb = 40\n"), "does not fit: 81 GB of 40 GB");
  EXPECT_EQ(why_not("device_memory_gb = 85\n"), "");
}

TEST(PlanTest, AMachineWithoutTheMemoryToFeedItIsNone) {
  Recorded recorded = RecordedOf(ATrace("Tesla T4"));
  recorded.trainer_bytes = 30e9;
  Request request = For({"t4"}, {1});
  const std::string machine = "[[machine]]\nname = \"one\"\ndevice = \"t4\"\ncores = 4\nmemory_gb = ";
  request.market = *ParseMarket(machine + "16\n", "prices.toml");
  EXPECT_EQ(RowOf(PlanFor({recorded}, request), "T4", 1)->estimate.why_not, "its host has 16 GB for 30 GB");
  request.market = *ParseMarket(machine + "32\n", "prices.toml");
  EXPECT_EQ(RowOf(PlanFor({recorded}, request), "T4", 1)->estimate.why_not, "");
}

TEST(PlanTest, SeveralDevicesWithoutKnownGradientsAreNotTold) {
  const Plan plan = PlanFor({RecordedOf(ATrace("Tesla T4"))}, For({"t4"}, {1, 2}));
  EXPECT_EQ(RowOf(plan, "T4", 1)->estimate.why_not, "");
  EXPECT_THAT(RowOf(plan, "T4", 2)->estimate.why_not, HasSubstr("gradients"));
}

TEST(PlanTest, AFasterLinkMakesSeveralDevicesFaster) {
  const auto linked = [](const char* gb) {
    return Shop(
        std::string("[[machine]]\nname = \"x\"\ndevice = \"T4\"\ncores = 64\nup_to = 8\nlink_gb_s = ") + gb +
        "\nlink_source = \"made\"\n");
  };
  const Recorded t4 = RecordedOn(AT4());
  const Plan slow = PlanFor({t4}, For({"t4"}, {4}, linked("0.1"))),
             fast = PlanFor({t4}, For({"t4"}, {4}, linked("50"))), unknown = PlanFor({t4}, For({"t4"}, {4}));
  EXPECT_LT(Expected(slow, "T4", 4), Expected(fast, "T4", 4));
  EXPECT_LT(Expected(fast, "T4", 4), 4 * 262);
  EXPECT_EQ(RowOf(slow, "T4", 4)->estimate.binds, Pipe::kLink);
  const Range& range = RowOf(unknown, "T4", 4)->estimate.per_s;
  EXPECT_GT(range.high / range.low, 1.15) << "one device was recorded: the range is wide";
}

// Two that exchange 8 MB in 0.8 ms: their link reached 10 GB/s.
Recorded TwoWithALink() {
  replay::testing::MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto launch = made.Add(Work::kLaunch, 5, {{begin}});
  const auto collective = made.Add(Work::kDevice, 800, {{launch, Dependency::kLaunch, 5, true}});
  made[collective].lane = Lane::kComm;
  made.Add(Work::kStepEnd, 0, {{collective}});
  Recorded two = RecordedOf(ATrace("Tesla T4"));
  two.graphs = {made.Graph(805)};
  two.gpus = 2;
  two.gradient_bytes = 8e6;
  return two;
}

TEST(PlanTest, ALinkOfTheFileThatCarriesLessThanTheRecordedOneSlowsTheSameDevices) {
  const auto with_link = [](const std::string& gb, int64_t gpus) {
    const Market market = Shop("[[machine]]\nname = \"x\"\ndevice = \"T4\"\ncores = 64\nup_to = 8\n" +
                               (gb.empty() ? "" : "link_source = \"made\"\nlink_gb_s = " + gb + "\n"));
    return RowOf(PlanFor({TwoWithALink()}, For({"t4"}, {gpus}, market)), "T4", gpus)->estimate.per_s;
  };
  for (const int64_t gpus : {2, 4}) {
    const Range recorded = with_link("", gpus), slower = with_link("1", gpus),
                faster = with_link("100", gpus);
    EXPECT_LT(slower.expected, 0.2 * recorded.expected) << gpus;
    EXPECT_DOUBLE_EQ(faster.expected, recorded.expected) << gpus << ": it may be the recorded machine";
    EXPECT_GT(faster.high, 2 * recorded.high) << gpus;
    EXPECT_DOUBLE_EQ(with_link("12", gpus).expected, recorded.expected) << gpus;
  }
}

TEST(PlanTest, DevicesOfSeveralMachinesHaveTheCoresOfAll) {
  testing::ARun two = testing::ARunOf(AT4());
  testing::ARun other = testing::ARunOf(AT4());
  two.Beside(other);
  record::Recording apart = two, together = two;
  apart.stages.front().ranks.back().node = 1;
  const Recorded on_two = RecordedOf(apart), on_one = RecordedOf(together);
  EXPECT_EQ(on_two.gpus, 2);
  EXPECT_EQ(on_two.machines, 2);
  EXPECT_EQ(on_one.machines, 1);
  EXPECT_EQ(on_two.CoresWith(4).logical, 16);
  EXPECT_EQ(on_one.CoresWith(4).logical, 4);
}

// ---- what holds for every plan ----

std::vector<Plan> Several() {
  const Market market = Shop();
  const Recorded t4 = RecordedOn(AT4()), v100 = RecordedOn(AV100()), trace = RecordedOf(ATrace("Tesla T4"));
  return {PlanFor({t4}, {}), PlanFor({t4, v100}, For({"t4", "v100"}, {1, 2, 4, 8}, market)),
          PlanFor({trace}, {}), PlanFor({trace}, For({"t4", "v100", "h100"}, {1, 3}, market))};
}

TEST(PlanPropertyTest, RangesContainWhatIsExpected) {
  const auto holds = [](const Range& range) {
    EXPECT_LE(range.low, range.expected);
    EXPECT_LE(range.expected, range.high);
    EXPECT_GT(range.low, 0);
  };
  int seen = 0;
  for (const Plan& plan : Several()) {
    for (const Row& row : plan.rows) {
      if (!row.estimate.why_not.empty()) continue;
      ++seen;
      holds(row.estimate.per_s);
      if (row.per_unit) holds(*row.per_unit);
      if (row.per_run) holds(*row.per_run);
    }
  }
  EXPECT_GE(seen, 20);
}

TEST(PlanPropertyTest, CostScalesWithThePrice) {
  const Recorded t4 = RecordedOn(AT4());
  Market dear = Shop();
  for (Offer& offer : dear.offers) *offer.machine.per_hour *= 3;
  const Plan cheap = PlanFor({t4}, For({"t4"}, {1, 2}, Shop())),
             three = PlanFor({t4}, For({"t4"}, {1, 2}, dear));
  ASSERT_EQ(cheap.rows.size(), three.rows.size());
  for (size_t i = 0; i < cheap.rows.size(); ++i) {
    EXPECT_NEAR(three.rows[i].per_unit->expected, 3 * cheap.rows[i].per_unit->expected, 1e-9);
    EXPECT_NEAR(three.rows[i].per_unit->high, 3 * cheap.rows[i].per_unit->high, 1e-9);
    EXPECT_EQ(three.rows[i].estimate.per_s.expected, cheap.rows[i].estimate.per_s.expected);
  }
}

TEST(PlanPropertyTest, TheOrderOfTheRequestDoesNotMatter) {
  const Recorded trace = RecordedOf(ATrace("Tesla T4"));
  const auto said = [&](std::vector<std::string> devices, std::vector<int64_t> gpus) {
    const Request request = For(std::move(devices), std::move(gpus), Shop());
    return ToJson(PlanFor({trace}, request), request).dump();
  };
  EXPECT_EQ(said({"t4", "v100", "h100"}, {1, 2}), said({"h100", "t4", "v100", "t4"}, {2, 1, 1}));
}

TEST(PlanPropertyTest, MoreDevicesNeverDoLessOnEnoughCores) {
  const Market many = Shop("[[machine]]\nname = \"x\"\ndevice = \"T4\"\ncores = 64\nup_to = 8\n");
  const Plan plan = PlanFor({RecordedOn(AT4())}, For({"t4"}, {1, 2, 4, 8}, many));
  double last = 0;
  for (const Row& row : plan.rows) {
    EXPECT_GT(row.estimate.per_s.expected, last);
    last = row.estimate.per_s.expected;
  }
}

TEST(PlanPropertyTest, AbsurdFiguresGiveFiniteOnes) {
  testing::ARun run = testing::ARunOf(AT4());
  record::Loader& loader = run.rank().loaders.front();
  loader.num_workers = INT64_MAX / 2;
  loader.fetch_ns = loader.cpu_ns = loader.run_delay_ns = INT64_MAX / 4;
  loader.dataset_samples = INT64_MAX;
  run.rank().facts["parameters"] = "1e300";
  record::Recording recording = run;
  recording.machine["cores"] = recording.machine["cores_logical"] = "0.001";
  recording.machine["cores_physical"] = "1e9";
  for (const Row& row : PlanFor({RecordedOf(recording)}, For({"t4"}, {1, 1024}, Shop())).rows) {
    EXPECT_TRUE(std::isfinite(row.estimate.per_s.low)) << NameOf(row);
    EXPECT_TRUE(std::isfinite(row.estimate.per_s.high)) << NameOf(row);
    EXPECT_GE(row.estimate.per_s.low, 0);
  }
}

// ---- goals ----

TEST(PlanGoalTest, ABudgetBuysTheFastestThatItPays) {
  Request request = For({"t4", "v100"}, {1, 2, 4}, Shop());
  request.samples = 100e6;
  request.goal.budget = 45;
  const Plan plan = PlanFor({RecordedOn(AT4()), RecordedOn(AV100())}, request);
  ASSERT_TRUE(plan.choice);
  const Row& chosen = plan.rows[plan.choice->row];
  EXPECT_LE(chosen.per_run->expected, 45);
  for (const Row& row : plan.rows) {
    if (!row.per_run || row.per_run->expected > 45) continue;
    EXPECT_LE(row.estimate.per_s.expected, chosen.estimate.per_s.expected);
  }
  request.goal.budget = 1;
  const Plan poor = PlanFor({RecordedOn(AT4())}, request);
  EXPECT_FALSE(poor.choice);
  EXPECT_THAT(Sentences(poor, request).front(), HasSubstr("none of these meets it"));
}

TEST(PlanGoalTest, ADeadlineIsMetByTheCheapestThatMeetsIt) {
  Request request = For({"t4", "v100"}, {1, 2, 4}, Shop());
  request.samples = 10e6;
  request.goal.by_s = 10e6 / 500;
  const Plan plan = PlanFor({RecordedOn(AT4()), RecordedOn(AV100())}, request);
  ASSERT_TRUE(plan.choice);
  EXPECT_EQ(NameOf(plan.rows[plan.choice->row]), "2x T4 with 8 cores");
}

TEST(PlanGoalTest, AGoalOfSamplesWithoutCountedSamplesIsRefused) {
  record::Recording trace = ATrace("Tesla T4");
  trace.stages.front().ranks.front().samples_known = false;
  Request request = For({"t4"}, {1});
  request.goal.need_per_s = 100;
  const Plan plan = PlanFor({RecordedOf(trace)}, request);
  EXPECT_FALSE(plan.choice);
  EXPECT_THAT(plan.why_no_choice, HasSubstr("--batch"));
  EXPECT_NEAR(Expected(plan, "T4", 1), 1 / 0.3, 0.1) << "steps stand in their place";
  const Plan said = PlanFor({RecordedOf(trace, nullptr, 64)}, request);
  EXPECT_NEAR(Expected(said, "T4", 1), 64 / 0.3, 5);
}

}  // namespace
}  // namespace fullbore::plan
