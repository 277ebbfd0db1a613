#include "agent/page.h"

#include <gmock/gmock.h>

#include "base/clock.h"

namespace fullbore::agent {
namespace {

using record::Metric;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// A node with one GPU that job 7 holds: it worked, and has idled for an hour since.
NodeView ANode() {
  NodeView node;
  node.now_ns = 10'000 * kNsPerSecond;
  node.self = {"1.2.3", 1e9, 2.5, 1e7};
  node.facts = {{"hostname", "node7"}, {"kernel", "6.1"}, {"cores_logical", "8"}};
  node.readings = {{record::KeyOf(Metric::kCpuUtilization), 0.25},
                   {record::KeyOf(Metric::kDiskRead, {{"device", "vda"}}), 1e6}};
  DeviceView view;
  view.t_ns = node.now_ns - kNsPerSecond;
  view.has_nvml = true;
  view.facts = {{"driver_version", "580.1"}};
  view.sight = {true, false};
  ShownDevice device;
  device.labels = {{"gpu", "0"}};
  device.name = "H100";
  device.uuid = "GPU-1";
  device.users_known = true;
  Hold hold;
  hold.processes = 2;
  hold.memory_bytes = 1024;
  hold.worked = true;
  hold.idle_ns = 3600 * kNsPerSecond;
  hold.seconds = {60, 3600, 0, 1};
  device.holds.push_back({{{"kind", "job"}, {"user", "anna"}, {"job_id", "7"}}, hold});
  view.devices.push_back(device);
  view.readings = {{record::KeyOf(Metric::kGpuPower, {{"gpu", "0"}}), 71.5},
                   {record::KeyOf(Metric::kGpuThrottleReasons, {{"gpu", "0"}}), 4}};
  view.xids[{"0", 79}] = 2;
  node.devices = view;
  return node;
}

constexpr char kHeld[] = "{gpu=\"0\",kind=\"job\",user=\"anna\",job_id=\"7\"} ";

TEST(PageTest, SaysWhoHoldsADeviceAndSinceWhenItIdles) {
  const std::string page = MetricsPage(ANode());
  EXPECT_THAT(page, HasSubstr(std::string("fullbore_gpu_holder_idle_seconds") + kHeld + "3600\n"));
  EXPECT_THAT(page, HasSubstr(std::string("fullbore_gpu_holder_without_process_seconds") + kHeld + "0\n"));
  EXPECT_THAT(page, HasSubstr(std::string("fullbore_gpu_holder_worked") + kHeld + "1\n"));
  EXPECT_THAT(page, HasSubstr(std::string("fullbore_gpu_holder_processes") + kHeld + "2\n"));
  EXPECT_THAT(page,
              HasSubstr("fullbore_gpu_holder_seconds_total{gpu=\"0\",kind=\"job\",user=\"anna\",job_id=\"7\","
                        "state=\"idle\"} 3600\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_gpu_holders{gpu=\"0\"} 1\n"));
  EXPECT_THAT(page, EndsWith("# EOF\n"));
}

TEST(PageTest, SaysWhatTheNodeIsAndDoes) {
  const std::string page = MetricsPage(ANode());
  EXPECT_THAT(
      page, HasSubstr("fullbore_node_info{hostname=\"node7\",kernel=\"6.1\",driver_version=\"580.1\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_gpu_info{gpu=\"0\",name=\"H100\",uuid=\"GPU-1\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_cpu_utilization_ratio{} 0.25\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_disk_read_bytes_per_second{device=\"vda\"} 1000000\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_gpu_power_watts{gpu=\"0\"} 71.5\n"));
  EXPECT_THAT(page, Not(HasSubstr("throttle_reasons"))) << "bits are no quantity";
  EXPECT_THAT(page, HasSubstr("fullbore_gpu_xids_total{gpu=\"0\",xid=\"79\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("process_resident_memory_bytes{} 10000000\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_agent_sees{what=\"environments\"} 0\n"));
}

TEST(PageTest, WhatIsNotKnownIsAbsent) {
  NodeView node = ANode();
  ShownDevice& device = node.devices->devices[0];
  device.holds[0].hold.idle_ns.reset();
  device.holds[0].hold.memory_bytes.reset();
  std::string page = MetricsPage(node);
  EXPECT_THAT(page, Not(HasSubstr("idle_seconds")));
  EXPECT_THAT(page, Not(HasSubstr("holder_memory")));
  device.users_known = false;
  device.lost = true;
  page = MetricsPage(node);
  EXPECT_THAT(page, Not(HasSubstr("fullbore_gpu_holders{")));
  EXPECT_THAT(page, Not(HasSubstr("without_process")));
  EXPECT_THAT(page, HasSubstr("fullbore_gpu_lost{gpu=\"0\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_gpu_holder_seconds_total")) << "what was counted stays";
}

TEST(PageTest, DevicesOfAnAgentWhoseNvmlHangsAreNotShown) {
  NodeView node = ANode();
  node.now_ns += 60 * kNsPerSecond;
  const std::string page = MetricsPage(node);
  EXPECT_THAT(page, HasSubstr("fullbore_agent_source_up{source=\"nvml\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_agent_nvml_age_seconds{} 61\n"));
  EXPECT_THAT(page, Not(HasSubstr("fullbore_gpu_")));
  EXPECT_THAT(page, HasSubstr("fullbore_cpu_utilization_ratio{} 0.25\n"));
}

TEST(PageTest, WithoutNvmlTheHostIsStillShown) {
  NodeView node = ANode();
  node.devices = DeviceView{};
  node.devices->t_ns = node.now_ns;
  const std::string page = MetricsPage(node);
  EXPECT_THAT(page, HasSubstr("fullbore_agent_source_up{source=\"nvml\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_cpu_utilization_ratio{} 0.25\n"));
  EXPECT_THAT(page, Not(HasSubstr("fullbore_agent_nvml_age_seconds{")));
}

TEST(PageTest, BeyondItsLimitItKeepsWhatMattersAndSaysHowMuchIsLeftOut) {
  NodeView node = ANode();
  for (int i = 0; i < 6000; ++i)
    node.readings[record::KeyOf(Metric::kDiskRead, {{"device", "d" + std::to_string(i)}})] = i;
  const std::string page = MetricsPage(node);
  size_t samples = 0;
  for (size_t at = page.find("\n"); at + 1 < page.size(); at = page.find("\n", at + 1))
    samples += page[at + 1] != '#';
  EXPECT_EQ(samples, kMostSeries);
  EXPECT_THAT(page, HasSubstr("fullbore_gpu_holder_idle_seconds{"));
  EXPECT_THAT(page, testing::ContainsRegex("fullbore_cut_series\\{\\} 1[0-9]+\n"));
  EXPECT_THAT(MetricsPage(ANode()), HasSubstr("fullbore_cut_series{} 0\n"));
}

TEST(PageTest, WhateverANameHoldsStaysInsideItsQuotes) {
  NodeView node = ANode();
  node.devices->devices[0].holds[0].labels = {{"kind", "service"}, {"unit", "a\"} 1\nb\xff.service"}};
  EXPECT_THAT(
      MetricsPage(node),
      HasSubstr(R"(fullbore_gpu_holder_worked{gpu="0",kind="service",unit="a\"} 1 b\\xff.service"} 1)"));
}

}  // namespace
}  // namespace fullbore::agent
