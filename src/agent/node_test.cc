// A node of canned files with the fake NVML of tests/fakes/nvml, through dlopen: who holds what, over time.
#include "agent/node.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "measure/probe/testing/fake_machine.h"

namespace fullbore::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kJob[] = "0::/system.slice/slurmstepd.scope/job_";
constexpr char kIdle[] =
    R"("waves": {"utilization": [0, 0, 1], "sm_active": [0, 0, 1], "memory_used": [0, 0, 1]})";

// The beginning of a sample about who holds a GPU.
std::string Held(const std::string& what, const std::string& gpu, const std::string& user,
                 const std::string& job) {
  return "fullbore_gpu_holder_" + what + "{gpu=\"" + gpu + "\",kind=\"job\",user=\"" + user + "\",job_id=\"" +
         job + "\"} ";
}

class NodeTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("FULLBORE_NVML", FULLBORE_FAKE_NVML_LIBRARY, 1);
    // Kept open: an unloaded library would forget the time that the test set.
    fake_ = dlopen(FULLBORE_FAKE_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    set_time_ = reinterpret_cast<void (*)(double)>(dlsym(fake_, "fakeNvmlSetTime"));
    files_.Write("/proc/stat", "cpu 10 0 10 80 0 0 0 0 0 0\n");
    files_.Write("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 600 kB\n");
    Put(1, "0::/init.scope", 0);
  }
  void TearDown() override {
    watch_.reset();
    set_time_(-1);
    dlclose(fake_);
    unsetenv("FULLBORE_NVML");
    unsetenv("FULLBORE_FAKE_NVML");
  }

  void Put(int64_t pid, const std::string& cgroup, uint32_t uid, const std::string& environment = "") {
    const std::string directory = "/proc/" + std::to_string(pid);
    files_.Write(directory + "/cgroup", cgroup + "\n");
    files_.Write(directory + "/status", "Uid:\t" + std::to_string(uid) + "\t0\t0\t0\n");
    files_.Write(directory + "/environ", environment);
  }
  void PutTask(int64_t pid, const std::string& job, uint32_t uid, const std::string& environment = "") {
    Put(pid, kJob + job + "/step_0/user/task_0", uid, environment);
    Put(pid + 5000, kJob + job + "/step_0/slurm", 0);
  }
  void Gpus(const std::string& gpus) {
    files_.Write("/script.json", R"({"gpus": [)" + gpus + "]}");
    setenv("FULLBORE_FAKE_NVML", (files_.root() + "/script.json").c_str(), 1);
    watch_ = std::make_unique<DeviceWatch>(
        files_.root(), [](uint32_t uid) { return "u" + std::to_string(uid); },
        [this](const std::string& line) { said_.push_back(line); });
  }
  // Looks each second until then.
  void Until(int seconds) {
    for (; second_ <= seconds; ++second_) {
      set_time_(second_);
      watch_->Look((100 + second_) * kNsPerSecond);
    }
  }
  std::string Page() const {
    NodeView node;
    node.devices = watch_->View();
    node.now_ns = node.devices->t_ns;
    return MetricsPage(node);
  }

  probe::FakeMachine files_;
  std::vector<std::string> said_;
  std::unique_ptr<DeviceWatch> watch_;
  void* fake_ = nullptr;
  void (*set_time_)(double) = nullptr;
  int second_ = 0;
};

TEST_F(NodeTest, AJobThatWorksHoldsItsDeviceAndDoesNotIdle) {
  PutTask(10, "7", 1000);
  Gpus(R"({"processes": [{"pid": 10, "memory_gib": 3}]}, {)" + std::string(kIdle) + "}");
  Until(20);
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr(Held("idle_seconds", "0", "u1000", "7") + "0\n"));
  EXPECT_THAT(page, HasSubstr(Held("memory_bytes", "0", "u1000", "7") + "3221225472\n"));
  EXPECT_THAT(page, HasSubstr("job_id=\"7\",state=\"busy\"} 20\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_gpu_holders{gpu=\"1\"} 0\n")) << "the other is free";
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(NodeTest, AJobThatOnceWorkedHasATailAndNotAMean) {
  PutTask(10, "7", 1000);
  // Busy in its first quarter of a minute, by a wave that is above 0 there.
  Gpus(R"({"gpm": false, "processes": [{"pid": 10}], "waves": {"utilization": [0, 100, 40]}})");
  Until(39);
  EXPECT_THAT(Page(), HasSubstr(Held("worked", "0", "u1000", "7") + "1\n"));
  const Hold hold = watch_->View().devices[0].holds[0].hold;
  EXPECT_EQ(hold.idle_ns, 15 * kNsPerSecond) << "since the look at 20 s";
}

TEST_F(NodeTest, AJobWhoseProcessesAreGoneStillHoldsItsDevice) {
  PutTask(10, "7", 1000);
  Gpus(R"({"processes": [{"pid": 99}], )" + std::string(kIdle) + "}");
  files_.Write("/proc/10/environ", std::string("SLURM_JOB_GPUS=0\0", 17));
  Put(99, "0::/user.slice/user-1001.slice/session-1.scope", 1001);
  Until(30);
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr(Held("without_process_seconds", "0", "u1000", "7") + "30\n"));
  EXPECT_THAT(page, HasSubstr(Held("worked", "0", "u1000", "7") + "0\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_gpu_holders{gpu=\"0\"} 2\n"));
  EXPECT_THAT(page,
              HasSubstr("fullbore_gpu_stray_processes{gpu=\"0\",user=\"u1001\",reason=\"no_job\"} 1\n"));
}

TEST_F(NodeTest, AJobThatUsedADeviceHoldsItAsLongAsItIsHere) {
  PutTask(10, "7", 1000);
  Put(11, std::string(kJob) + "7/step_0/user/task_1", 1000);
  Gpus(R"({"processes": [{"pid": 10, "until": 6}], )" + std::string(kIdle) + "}");
  Until(21);
  EXPECT_THAT(Page(), HasSubstr(Held("without_process_seconds", "0", "u1000", "7") + "15\n"));
  for (const char* gone : {"/proc/10", "/proc/11", "/proc/5010"}) files_.Remove(gone);
  Until(26);
  EXPECT_THAT(Page(), HasSubstr("fullbore_gpu_holders{gpu=\"0\"} 0\n")) << "with the job, its hold is over";
}

TEST_F(NodeTest, MemoryThatNobodyListedHoldsIsHeldByNobodyKnown) {
  Gpus(R"({"waves": {"utilization": [0, 0, 1], "sm_active": [0, 0, 1], "memory_used": [40, 0, 1]}}, {)" +
       std::string(kIdle) + "}");
  Until(10);
  EXPECT_THAT(Page(), HasSubstr("fullbore_gpu_holder_without_process_seconds{gpu=\"0\",kind=\"none\"} 10\n"));
  EXPECT_THAT(Page(), HasSubstr("fullbore_gpu_holders{gpu=\"1\"} 0\n"));
}

TEST_F(NodeTest, ADeviceThatWorksIsNotHeldForNothingWhereNoProcessIsListed) {
  PutTask(10, "7", 1000, "SLURM_JOB_GPUS=0");
  Gpus("{}, {}");
  Until(20);
  EXPECT_THAT(Page(), HasSubstr(Held("without_process_seconds", "0", "u1000", "7") + "0\n"));
  EXPECT_THAT(Page(), HasSubstr("fullbore_gpu_holder_without_process_seconds{gpu=\"1\",kind=\"none\"} 0\n"));
  EXPECT_THAT(Page(),
              HasSubstr("fullbore_gpu_holder_seconds_total{gpu=\"1\",kind=\"none\",state=\"busy\"} 20\n"));
}

TEST_F(NodeTest, OfTwoWhoShareADeviceEachHasItsOwnTail) {
  PutTask(10, "7", 1000);
  PutTask(20, "8", 1001);
  Gpus(R"({"processes": [{"pid": 10, "sm": 60}, {"pid": 20, "sm": 0}]})");
  Until(10);
  EXPECT_THAT(Page(), HasSubstr(Held("idle_seconds", "0", "u1000", "7") + "0\n"));
  EXPECT_THAT(Page(), HasSubstr(Held("idle_seconds", "0", "u1001", "8") + "10\n"));
  EXPECT_THAT(Page(), HasSubstr("job_id=\"8\",state=\"idle\"} 5\n")) << "half of the device";
}

TEST_F(NodeTest, InstancesAreHeldEachByItsOwn) {
  PutTask(10, "7", 1000);
  PutTask(20, "8", 1001);
  Gpus(R"({"mig": [1, 2], "processes": [{"pid": 10, "mig": 1}, {"pid": 20, "mig": 2}], )" +
       std::string(kIdle) + "}");
  Until(10);
  EXPECT_THAT(
      Page(),
      HasSubstr(
          "fullbore_gpu_holder_processes{gpu=\"0\",mig=\"0\",kind=\"job\",user=\"u1000\",job_id=\"7\"} 1\n"));
  EXPECT_THAT(Page(), HasSubstr("fullbore_gpu_holders{gpu=\"0\",mig=\"1\"} 1\n"));
  EXPECT_THAT(Page(), Not(HasSubstr("fullbore_gpu_holders{gpu=\"0\"} "))) << "the GPU itself is divided";
}

TEST_F(NodeTest, WhatAnInstanceDoesIsNotKnownBeforeHopper) {
  PutTask(10, "7", 1000);
  Gpus(R"({"gpm": false, "mig": [1], "processes": [{"pid": 10, "mig": 1}]})");
  Until(10);
  EXPECT_THAT(Page(), HasSubstr("fullbore_gpu_holders{gpu=\"0\",mig=\"0\"} 1\n"));
  EXPECT_THAT(Page(), Not(HasSubstr("idle_seconds")));
  EXPECT_THAT(Page(), HasSubstr("job_id=\"7\",state=\"unknown\"} 10\n"));
}

TEST_F(NodeTest, WhoHasOutlivedItsStepIsAStray) {
  PutTask(10, "7", 1000);
  files_.Remove("/proc/5010");
  Gpus(R"({"processes": [{"pid": 10}]})");
  Until(5);
  EXPECT_THAT(Page(),
              HasSubstr("fullbore_gpu_stray_processes{gpu=\"0\",user=\"u1000\",reason=\"step_over\"} 1\n"));
}

TEST_F(NodeTest, ProcessesWhoseOwnerCannotBeSeenAreCounted) {
  Gpus(R"({"processes": [{"pid": 4711}]})");
  Until(5);
  EXPECT_THAT(Page(), HasSubstr("fullbore_agent_unseen_processes{} 1\n"));
  EXPECT_THAT(Page(), HasSubstr("fullbore_gpu_holder_processes{gpu=\"0\",kind=\"none\"} 1\n"));
}

TEST_F(NodeTest, ALostDeviceIsNotAnIdleOne) {
  PutTask(10, "7", 1000);
  Gpus(R"({"processes": [{"pid": 10}], "lost_at": 10, "back_at": 40})");
  Until(30);
  EXPECT_THAT(Page(), HasSubstr("fullbore_gpu_lost{gpu=\"0\"} 1\n"));
  EXPECT_THAT(Page(), Not(HasSubstr("idle_seconds")));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("GPU 0 is lost")));
  Until(60);
  EXPECT_THAT(Page(), HasSubstr("fullbore_gpu_lost{gpu=\"0\"} 0\n"));
  EXPECT_THAT(Page(), HasSubstr("job_id=\"7\"} 0\n"));
}

TEST_F(NodeTest, ADriverThatComesLaterIsFound) {
  Gpus("{}");
  unsetenv("FULLBORE_FAKE_NVML");
  Until(5);
  EXPECT_THAT(Page(), HasSubstr("fullbore_agent_source_up{source=\"nvml\"} 0\n"));
  setenv("FULLBORE_FAKE_NVML", (files_.root() + "/script.json").c_str(), 1);
  Until(70);
  EXPECT_THAT(Page(), HasSubstr("fullbore_agent_source_up{source=\"nvml\"} 1\n"));
}

TEST_F(NodeTest, WithoutNvmlTheHostIsShownAndWhatIsMissingIsSaidOnce) {
  setenv("FULLBORE_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
  Node node(files_.root(), "1", [this](const std::string& line) { said_.push_back(line); });
  for (int i = 0; i < 3; ++i) node.Tick(i * kNsPerSecond);
  EXPECT_THAT(node.Page(3 * kNsPerSecond), HasSubstr("fullbore_memory_used_bytes{} 409600\n"));
  EXPECT_EQ(std::ranges::count_if(said_, [](const std::string& line) { return line.starts_with("no GPUs"); }),
            1);
}

TEST_F(NodeTest, AnNvmlThatHangsHoldsUpNobody) {
  Gpus(R"({"hangs_at": 5})");
  set_time_(6);
  {
    Node node(files_.root(), "1", [](const std::string&) {});
    node.Tick(MonotonicNs());
    node.Tick(MonotonicNs());
    EXPECT_THAT(node.Page(MonotonicNs()), HasSubstr("fullbore_memory_used_bytes{} 409600\n"));
    EXPECT_THAT(node.Page(MonotonicNs()), HasSubstr("fullbore_agent_source_up{source=\"nvml\"} 0\n"));
  }
}

}  // namespace
}  // namespace fullbore::agent
