#include "plan/market_file.h"

#include <gmock/gmock.h>

#include "plan/testing/practice.h"

namespace fullbore::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kMachine[] = "[[machine]]\nname = \"a\"\ndevice = \"T4\"\ncores = 4\n";

Error ErrorOf(const std::string& text) {
  const auto market = ParseMarket(text, "prices.toml");
  return market ? Error{} : market.error();
}

TEST(MarketFileTest, TheExampleIsOne) {
  const auto market = ParseMarket(kPricesExample, "examples/prices.toml");
  ASSERT_TRUE(market.ok()) << ToString(market.error());
  EXPECT_GE(market->offers.size(), 5u);
  for (const Offer& offer : market->offers) {
    EXPECT_FALSE(offer.machine.source.empty()) << offer.machine.name;
    EXPECT_FALSE(offer.machine.date.empty()) << offer.machine.name;
  }
}

// The cheapest, which is the first.
std::optional<Machine> MachineWith(const Market& market, const roofline::Device& device, int64_t gpus) {
  const auto machines = MachinesWith(market, device, gpus);
  return machines.empty() ? std::nullopt : std::optional(machines.front());
}

TEST(MarketFileTest, MachinesAreTheCheapestAndThoseThatHaveMoreForMore) {
  const Market market = testing::Shop(std::string(testing::kShop) + R"(
[[machine]]
name = "four"
device = "T4"
gpus = 4
cores = 64
per_hour = 1.3
source = "made"
date = "2026-11-29"
)");
  const roofline::Device& t4 = *roofline::DeviceMeant("T4");
  EXPECT_EQ(MachineWith(market, t4, 2)->cores, 8);
  EXPECT_DOUBLE_EQ(*MachineWith(market, t4, 2)->per_hour, 0.7);
  EXPECT_EQ(MachineWith(market, t4, 4)->name, "four") << "1.30 is less than 1.40";
  EXPECT_EQ(MachineWith(market, t4, 3)->cores, 12);
  EXPECT_FALSE(MachineWith(market, t4, 16));
  EXPECT_FALSE(MachineWith(market, *roofline::DeviceMeant("H100"), 1));
  EXPECT_EQ(MachineWith(market, t4, 1)->device_memory_bytes, 16e9) << "as its data sheet says";
  EXPECT_EQ(MachinesWith(market, t4, 4).size(), 1u) << "four single ones have fewer cores and cost more";
}

TEST(MarketFileTest, AMachineThatCostsMoreForMoreCoresIsOneToo) {
  const Market market = *ParseMarket(R"(
[[machine]]
name = "small"
device = "V100"
cores = 1
per_hour = 0.35
source = "made"
date = "2026-11-29"
[[machine]]
name = "large"
device = "V100"
cores = 8
per_hour = 0.40
source = "made"
date = "2026-11-29"
[[machine]]
name = "worse"
device = "V100"
cores = 8
per_hour = 0.50
source = "made"
date = "2026-11-29"
)",
                                     "prices.toml");
  const auto machines = MachinesWith(market, *roofline::DeviceMeant("V100"), 1);
  ASSERT_EQ(machines.size(), 2u);
  EXPECT_EQ(machines[0].name, "small");
  EXPECT_EQ(machines[1].name, "large");
}

TEST(MarketFileTest, AFileThatEndsAnywhereIsReadOrRefusedWithItsLine) {
  for (size_t size = 0; size < kPricesExample.size(); ++size) {
    const auto market = ParseMarket(kPricesExample.substr(0, size), "prices.toml");
    if (market) continue;
    EXPECT_THAT(market.error().text, StartsWith("prices.toml:")) << size;
  }
}

TEST(MarketFileTest, ErrorsNameTheLineAndWhatWouldBeRight) {
  EXPECT_THAT(ErrorOf("[[machine]\n").text, StartsWith("prices.toml:1: "));
  EXPECT_THAT(ErrorOf("").text, HasSubstr("no machine is in it"));
  EXPECT_THAT(ErrorOf("[[machine]]\nname = \"a\"\ncores = 4\n").text, HasSubstr("device is missing"));
  const Error typo = ErrorOf("[[machine]]\nname = \"a\"\ndevice = \"T5\"\ncores = 4\n");
  EXPECT_EQ(typo.text, "prices.toml:3: machine 'a': no device is called \"T5\"");
  EXPECT_EQ(typo.hint, "did you mean 'T4'?");
  const std::string priced = std::string(kMachine) + "source = \"x\"\ndate = 2026-11-29\n";
  EXPECT_THAT(ErrorOf(priced + "per_hour = -1\n").text,
              StartsWith("prices.toml:7: machine 'a': per_hour = -1 is not"));
  EXPECT_THAT(ErrorOf(std::string(kMachine) + "per_hour = 1\n").text,
              HasSubstr("a price needs its source and its date"));
  EXPECT_THAT(ErrorOf(std::string(kMachine) + "per_hours = 1\n").hint, HasSubstr("per_hour"));
  EXPECT_THAT(ErrorOf(std::string(kMachine) + "gpus = 0\n").text, HasSubstr("gpus = 0 is not"));
  EXPECT_THAT(ErrorOf(std::string(kMachine) + "gpus = 1.5\n").text, HasSubstr("not a whole number"));
  EXPECT_THAT(ErrorOf(std::string(kMachine) + "gpus = 4\nup_to = 6\n").text, HasSubstr("no multiple"));
  EXPECT_THAT(ErrorOf(std::string(kMachine) + "link_gb_s = 100\n").text,
              HasSubstr("a bandwidth needs its source"));
  EXPECT_THAT(ErrorOf(priced + "per_hour = 1\n").text, "") << "and this one is right";
  EXPECT_THAT(ErrorOf(std::string(kMachine) + "per_hour = 1\nsource = \"x\"\ndate = \"May\"\n").text,
              HasSubstr("no date"));
}

}  // namespace
}  // namespace fullbore::plan
