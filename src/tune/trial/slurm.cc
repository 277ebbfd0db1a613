#include "tune/trial/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/captured.h"
#include "base/clock.h"
#include "base/command_line.h"
#include "base/guarded_file.h"
#include "base/small_file.h"
#include "base/text.h"

namespace fullbore::tune {

namespace {

constexpr int64_t kPatienceNs = 60 * kNsPerSecond;     // for an answer of the controller
constexpr int64_t kBetweenLooksNs = kNsPerSecond / 2;  // at the folders; the controller is asked more seldom
constexpr int kLooksPerQuestion = 4;
// After a job's end, its answer may take a while to appear in a shared directory (NFS caches attributes for a minute).
constexpr int64_t kAnswerMayComeNs = 90 * kNsPerSecond;
constexpr size_t kLastOfALog = 300, kMostOfALog = 64 << 20;

std::string Contents(const std::string& path) {
  auto text = ReadSmallFile(path, kMostOfALog);
  return text ? std::move(*text) : std::string();
}

// The answer appears at once or not at all, and again where the job had to begin anew.
std::string Script(const std::string& program, const std::string& folder,
                   const std::vector<std::string>& measure) {
  std::vector<std::string> words = {program, "measure", "--json", "-"};
  words.insert(words.end(), measure.begin(), measure.end());
  const std::string part = ShellQuote(folder + "/answer.part");
  return "#!/bin/sh\n" + ShellLine(words) + " > " + part + "\nstatus=$?\n[ $status = 0 ] && mv " + part +
         " " + ShellQuote(folder + "/answer.json") + "\nexit $status\n";
}

class Job {
 public:
  Job(const SlurmOptions& options, const SlurmTrial& trial) : options_(options), trial_(trial) {}

  Result<void> Submit();
  // Nothing while it goes on. `ask`: whether to ask the controller, too.
  std::optional<Result<Trial>> Look(bool ask);
  void Cancel() const;

  bool submitted() const { return !id_.empty(); }
  const std::string& id() const { return id_; }
  const Settings& settings() const { return trial_.settings; }
  std::string TakeNews() { return std::exchange(news_, {}); }

 private:
  std::optional<Trial> Answer() const;
  std::optional<Result<Trial>> Ended(JobEnd end, const std::string& state);
  Trial Without(Outcome outcome, std::string why) const;

  const SlurmOptions& options_;
  const SlurmTrial& trial_;
  std::string id_, folder_, news_;
  int submissions_ = 0;
  int64_t ended_ns_ = 0;  // when it was first seen to have ended
};

Result<void> Job::Submit() {
  auto folder = MakeUniqueDirectory(options_.directory + "/slurm-job");
  if (!folder) return folder.error();
  folder_ = *folder;
  const std::string script = folder_ + "/job.sh";
  if (auto written =
          WriteFileAtOnce(script, Script(options_.program, folder_, trial_.measure), kPrivateFile | 0100);
      !written)
    return written.error();
  std::vector<std::string> words = {"sbatch", "--parsable", "--requeue", "--job-name=fullbore",
                                    "--output=" + folder_ + "/log"};
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  words.push_back(script);
  const auto done = RunAndCapture(words, kPatienceNs);
  if (!done) {
    Error error = done.error();
    if (error.code == ErrorCode::kNotFound)
      error.hint = "run this where jobs of a Slurm cluster can be submitted";
    return error;
  }
  if (done->status != 0) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("sbatch refused the job: {}", Trim(done->both().substr(0, kLastOfALog))),
                 "--partition names another partition; `sinfo` lists them"};
  }
  id_ = std::string(Trim(done->output.substr(0, done->output.find_first_of(";\n"))));
  ended_ns_ = 0;
  ++submissions_;
  return {};
}

std::optional<Trial> Job::Answer() const {
  const auto json = nlohmann::json::parse(Contents(folder_ + "/answer.json"), nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  auto trial = TrialFrom(json);
  return trial ? std::optional(*trial) : std::nullopt;
}

Trial Job::Without(Outcome outcome, std::string why) const {
  Trial trial;
  trial.settings = trial_.settings;
  trial.outcome = outcome;
  trial.why = std::move(why);
  return trial;
}

std::optional<Result<Trial>> Job::Look(bool ask) {
  if (auto trial = Answer()) {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
    return *trial;
  }
  if (!ask) return std::nullopt;
  const auto said = RunAndCapture({"scontrol", "show", "job", "--oneliner", id_}, kPatienceNs);
  if (!said) return std::nullopt;  // the controller is away: what runs goes on without it
  const std::string state = JobStateIn(said->both());
  // A job that the controller has forgotten has ended long ago.
  const bool forgotten = said->status != 0 && said->errors.find("Invalid job id") != std::string::npos;
  const JobEnd end = forgotten ? JobEnd::kFailed : EndOf(state);
  return end == JobEnd::kGoesOn ? std::nullopt : Ended(end, forgotten ? "forgotten" : state);
}

std::optional<Result<Trial>> Job::Ended(JobEnd end, const std::string& state) {
  switch (end) {
    case JobEnd::kGoesOn:
      return std::nullopt;
    case JobEnd::kOutOfMemory:
      return Without(Outcome::kOutOfMemory, fmt::format("Slurm killed job {} for exceeding its memory", id_));
    case JobEnd::kTooLong:
      return Without(Outcome::kHung, fmt::format("job {} reached its time limit", id_));
    case JobEnd::kCancelled:
      return Result<Trial>(Error{ErrorCode::kUnavailable, fmt::format("somebody cancelled job {}", id_),
                                 "--resume continues with the trials that are left"});
    case JobEnd::kAgain:
      if (submissions_ <= options_.resubmissions) {
        news_ = fmt::format("job {} ended as {}: submitted again", id_, state);
        if (auto again = Submit(); !again) return Result<Trial>(again.error());
        return std::nullopt;
      }
      break;
    case JobEnd::kFailed: {
      const int64_t now_ns = MonotonicNs();
      if (ended_ns_ == 0) ended_ns_ = now_ns;
      const std::string log = Contents(folder_ + "/log");
      // A job that ended well has written its answer, whatever it printed; what failed says why in its log.
      const bool has_failed = (state == "FAILED" || state == "REVOKED") && !log.empty();
      if (!has_failed && now_ns - ended_ns_ < kAnswerMayComeNs) return std::nullopt;
      const std::string last = log.substr(log.size() - std::min(log.size(), kLastOfALog));
      return Result<Trial>(Error{ErrorCode::kUnavailable,
                                 fmt::format("job {} ended as {}: {}", id_, state, Trim(last)),
                                 "its script and its output are in " + folder_});
    }
  }
  return Result<Trial>(Error{ErrorCode::kUnavailable,
                             fmt::format("job {} ended as {} after {} submissions", id_, state, submissions_),
                             "the nodes of this partition do not stay up long enough for a trial"});
}

void Job::Cancel() const { (void)RunAndCapture({"scancel", id_}, kPatienceNs); }

void Pause() {
  const timespec pause = {0, kBetweenLooksNs};
  nanosleep(&pause, nullptr);
}

// The jobs of one call, and what came of those that have ended.
class Queue {
 public:
  Queue(const SlurmOptions& options, const std::vector<SlurmTrial>& trials, const SlurmCalls& calls)
      : calls_(calls), most_(std::max(1, options.jobs)), ended_(trials.size()) {
    for (const SlurmTrial& trial : trials) jobs_.emplace_back(options, trial);
  }

  bool IsDone() const {
    return std::all_of(ended_.begin(), ended_.end(), [](bool ended) { return ended; });
  }

  Result<void> Tick(bool ask) {
    int open = 0;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (ended_[i]) continue;
      if (!jobs_[i].submitted()) {
        if (open >= most_) break;
        if (auto submitted = jobs_[i].Submit(); !submitted) return submitted;
        calls_.say(fmt::format("job {}: {}", jobs_[i].id(), ToText(jobs_[i].settings())));
      } else if (auto ended = jobs_[i].Look(ask)) {
        if (!*ended) return ended->error();
        ended_[i] = true;
        calls_.measured(i, **ended);
        continue;
      }
      if (const std::string news = jobs_[i].TakeNews(); !news.empty()) calls_.say(news);
      ++open;
    }
    return {};
  }

  void CancelAll() const {
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].submitted() && !ended_[i]) jobs_[i].Cancel();
    }
  }

 private:
  const SlurmCalls& calls_;
  int most_;
  std::vector<Job> jobs_;
  std::vector<bool> ended_;  // by job: its trial was handed over
};

}  // namespace

std::string JobStateIn(std::string_view text) {
  constexpr std::string_view kKey = "JobState=";
  const size_t at = text.find(kKey);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = text.substr(at + kKey.size());
  return std::string(rest.substr(0, rest.find_first_of(" \n")));
}

JobEnd EndOf(std::string_view state) {
  if (state == "NODE_FAIL" || state == "BOOT_FAIL" || state == "PREEMPTED") return JobEnd::kAgain;
  if (state == "OUT_OF_MEMORY") return JobEnd::kOutOfMemory;
  if (state == "TIMEOUT" || state == "DEADLINE") return JobEnd::kTooLong;
  if (state == "CANCELLED") return JobEnd::kCancelled;
  if (state == "FAILED" || state == "COMPLETED" || state == "REVOKED") return JobEnd::kFailed;
  return JobEnd::kGoesOn;
}

Result<void> MeasureOnSlurm(const SlurmOptions& options, const std::vector<SlurmTrial>& trials,
                            const SlurmCalls& calls) {
  Queue queue(options, trials, calls);
  for (int look = 0; !queue.IsDone(); ++look) {
    const bool is_over = calls.is_over();
    auto ticked = is_over ? Result<void>() : queue.Tick(look % kLooksPerQuestion == 0);
    if (!ticked || is_over) {
      queue.CancelAll();
      return ticked;
    }
    if (!queue.IsDone()) Pause();
  }
  return {};
}

}  // namespace fullbore::tune
