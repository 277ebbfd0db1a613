#include "measure/stacks/sampled_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/secrets.h"
#include "base/utf8.h"
#include "measure/stacks/classes.h"

namespace fullbore::stacks {

using record::Activity;
using record::Share;

namespace {

constexpr double kNormal95 = 1.96;
constexpr size_t kMaxTextBytes = 160;
constexpr size_t kHotLinesKept = 64;

// A training process: of its threads the one with most passes.
struct Trainer {
  const Thread* thread = nullptr;
  std::unique_ptr<TrainingLoop> loop;
};

std::map<int64_t, Trainer> TrainersIn(const Profile& profile, const Family& family, Sources& sources) {
  std::map<int64_t, Trainer> trainers;
  for (const Thread& thread : profile.threads) {
    auto loop = std::make_unique<TrainingLoop>(profile, thread, sources, family.UsesDevice(thread.pid));
    if (!loop->trains()) continue;
    Trainer& trainer = trainers[thread.pid];
    if (!trainer.loop || loop->passes() > trainer.loop->passes()) trainer = {&thread, std::move(loop)};
  }
  return trainers;
}

bool IsWorker(const Profile& profile, const Thread& thread) {
  return std::ranges::any_of(thread.samples, [&](const Stack& stack) {
    return std::ranges::any_of(stack, [&](uint32_t frame) {
      return profile.frames[frame].function == "_worker_loop" &&
             profile.frames[frame].module == "torch.utils.data._utils.worker";
    });
  });
}

// What a stack says of fetching: in a worker, or in a training thread that loads for itself.
struct Fetching {
  bool fetches = false, collates = false, default_collate = false, blocked = false;
};

class FetchReader {
 public:
  FetchReader(const Profile& profile, Sources& sources) : profile_(profile), sources_(sources) {}

  Fetching Read(const Stack& stack) const {
    Fetching seen;
    size_t depth = 0;
    for (; depth < stack.size(); ++depth) {
      const Frame& frame = profile_.frames[stack[depth]];
      if (frame.module == "torch.utils.data._utils.fetch") {
        seen.fetches = true;
        seen.collates = sources_.Line(frame.file, frame.line).find("collate_fn(") != std::string_view::npos;
        break;
      }
    }
    for (size_t inner = depth; inner < stack.size(); ++inner) {
      const Frame& frame = profile_.frames[stack[inner]];
      seen.default_collate = seen.default_collate || frame.module == "torch.utils.data._utils.collate";
    }
    if (seen.fetches) seen.blocked = IsBlocked(profile_.frames[stack.back()]);
    return seen;
  }

 private:
  // By the innermost frame: it waits in a function of Python's, or calls one that blocks.
  bool IsBlocked(const Frame& frame) const {
    const ActivityTable& table = ActivityTable::Get();
    if (table.WaitOf(frame.module, frame.function)) return true;
    for (const std::string& call : sources_.CallsIn(frame.file, frame.line)) {
      const Activity activity = table.CallOf(call);
      if (activity == Activity::kSleep || activity == Activity::kNetwork || activity == Activity::kLock ||
          activity == Activity::kSubprocess || activity == Activity::kQueue)
        return true;
    }
    return false;
  }

  const Profile& profile_;
  Sources& sources_;
};

class RankBuilder {
 public:
  RankBuilder(const Profile& profile, const Trainer& trainer, Sources& sources, int samples_per_s,
              int64_t end_ns)
      : profile_(profile),
        trainer_(trainer),
        sources_(sources),
        per_window_(static_cast<size_t>(samples_per_s)),
        period_ns_(kNsPerSecond / samples_per_s),
        begin_ns_(end_ns - static_cast<int64_t>(trainer.thread->samples.size()) * period_ns_) {}

  record::RankInfo Build(const Family& family) {
    info_.pid = trainer_.thread->pid;
    const auto member = family.members().find(info_.pid);
    info_.rank = member == family.members().end() ? -1 : member->second.rank;
    if (const int64_t threads = family.PoolOf(info_.pid); threads > 0)
      info_.facts["torch_threads"] = std::to_string(threads);
    if (member != family.members().end() && member->second.omp_threads)
      info_.facts["omp_num_threads"] = std::to_string(*member->second.omp_threads);
    CountSamples();
    AddLoader(family);
    AddHotLines();
    const auto samples = static_cast<int64_t>(trainer_.thread->samples.size());
    info_.facts[kSampledFact] = fmt::format(R"({{"samples": {}, "points": {:.4f}, "per_s": {}}})", samples,
                                            UncertaintyOf(info_.steps, samples), per_window_);
    return std::move(info_);
  }

 private:
  using Key =
      std::tuple<Share, record::HostOther, Activity, bool, std::string, int, std::string, std::string>;

  void CountSamples() {
    const std::vector<Stack>& samples = trainer_.thread->samples;
    for (size_t begin = 0; begin < samples.size(); begin += per_window_) {
      const size_t end = std::min(samples.size(), begin + per_window_);
      if (2 * (end - begin) < per_window_ && begin > 0)
        break;  // the rest of a second weighs as much as a whole one
      record::Step step;
      step.index = static_cast<int64_t>(info_.steps.size());
      for (size_t i = begin; i < end; ++i) Count(trainer_.loop->Read(samples[i]), step);
      step.wall_ns = static_cast<int64_t>(end - begin) * period_ns_;
      step.end_ns = begin_ns_ + static_cast<int64_t>(end) * period_ns_;
      info_.steps.push_back(step);
      record::StepWindow window;
      window.begin_ns = step.end_ns - step.wall_ns;
      window.end_ns = step.end_ns;
      window.first_step = step.index;
      window.steps = 1;
      window.min_wall_ns = window.max_wall_ns = step.wall_ns;
      window.share_ns = step.share_ns;
      window.host_other_ns = step.host_other_ns;
      info_.windows.push_back(window);
    }
  }

  void Count(const Seen& seen, record::Step& step) {
    step.share_ns[Index(seen.phase.share)] += period_ns_;
    if (seen.phase.share == Share::kHostOther)
      step.host_other_ns[static_cast<size_t>(seen.phase.part)] += period_ns_;
    const Frame* at = seen.where;
    ++hits_[{seen.phase.share, seen.phase.part, seen.activity, seen.in_iterator,
             at ? sources_.PathOf(at->file) : "", at ? at->line : 0, at ? at->function : "", seen.library}];
  }

  void AddHotLines() {
    for (const auto& [key, samples] : hits_) {
      const auto& [share, part, activity, in_iterator, file, line, function, library] = key;
      if (file.empty()) continue;
      const std::string text(Utf8Front(sources_.Line(file, line), kMaxTextBytes));
      info_.hot_lines.push_back(
          {share, file, line, function, MaskSecrets(text), samples, part, activity, in_iterator, library});
    }
    std::ranges::stable_sort(info_.hot_lines,
                             [](const auto& a, const auto& b) { return a.samples > b.samples; });
    if (info_.hot_lines.size() > kHotLinesKept) info_.hot_lines.resize(kHotLinesKept);
  }

  // The loader's work for each window of the training, as if it were a batch: how much of it each takes is what a
  // prediction needs, not how many batches it was.
  void AddLoader(const Family& family) {
    const FetchReader reader(profile_, sources_);
    record::Loader loader;
    loader.feeds_training = true;
    std::set<int64_t> workers;
    std::vector<int64_t> fetch_ns(info_.steps.size());
    int64_t blocked_ns = 0, worker_cpu_ns = 0;
    const auto add = [&](const Thread& thread) {
      for (size_t i = 0; i < thread.samples.size(); ++i) {
        const Fetching seen = reader.Read(thread.samples[i]);
        loader.default_collate = loader.default_collate || seen.default_collate;
        if (!seen.fetches || fetch_ns.empty()) continue;
        fetch_ns[std::min(i / per_window_, fetch_ns.size() - 1)] += period_ns_;
        loader.fetch_ns += period_ns_;
        if (seen.collates) loader.collate_ns += period_ns_;
        if (seen.blocked) blocked_ns += period_ns_;
      }
    };
    for (const Thread& thread : profile_.threads) {
      if (thread.pid == info_.pid || family.TrainerOf(thread.pid) != info_.pid || !IsWorker(profile_, thread))
        continue;
      workers.insert(thread.pid);
      worker_cpu_ns += family.CpuNsOf(thread.pid);
      loader.worker_span_ns += static_cast<int64_t>(thread.samples.size()) * period_ns_;
      add(thread);
    }
    if (workers.empty()) add(*trainer_.thread);
    if (loader.fetch_ns == 0) return;
    loader.num_workers = static_cast<int64_t>(workers.size());
    loader.worker_idle_ns = workers.empty() ? 0 : loader.worker_span_ns - loader.fetch_ns;
    loader.cpu_ns = loader.fetch_ns - blocked_ns;
    // What a worker blocks for inside a library shows in the time that it had on a core.
    if (!workers.empty()) loader.cpu_ns = std::min(loader.cpu_ns, worker_cpu_ns);
    loader.batches = static_cast<int64_t>(fetch_ns.size());
    for (const int64_t ns : fetch_ns) loader.batch_fetch_ns.Add(static_cast<double>(ns));
    for (record::Step& step : info_.steps) {
      step.batches = 1;
      loader.wait_ns.Add(static_cast<double>(step.share_ns[Index(Share::kDataWait)]));
    }
    info_.loaders.push_back(std::move(loader));
  }

  const Profile& profile_;
  const Trainer& trainer_;
  Sources& sources_;
  const size_t per_window_;
  const int64_t period_ns_, begin_ns_;
  record::RankInfo info_;
  std::map<Key, int64_t> hits_;
};

// Those without a number of their own get the next free ones.
void Number(std::vector<record::RankInfo>& ranks) {
  std::set<int> taken;
  for (record::RankInfo& rank : ranks) {
    rank.rank = std::max(0, rank.rank);
    while (taken.contains(rank.rank)) ++rank.rank;
    taken.insert(rank.rank);
  }
  std::ranges::sort(ranks, {}, &record::RankInfo::rank);
}

}  // namespace

double UncertaintyOf(const std::vector<record::Step>& windows, int64_t samples) {
  const auto count = static_cast<double>(windows.size());
  if (windows.empty() || samples == 0) return 1;
  double worst = 0;
  for (size_t share = 0; share < record::kShareCount; ++share) {
    double sum = 0, squares = 0;
    for (const record::Step& window : windows) {
      const double ratio = static_cast<double>(window.share_ns[share]) /
                           static_cast<double>(std::max<int64_t>(1, window.wall_ns));
      sum += ratio;
      squares += ratio * ratio;
    }
    const double mean = sum / count;
    const double of_samples = std::sqrt(mean * (1 - mean) / static_cast<double>(samples));
    const double variance = count > 1 ? std::max(0.0, squares - count * mean * mean) / (count - 1) : 0;
    worst = std::max({worst, kNormal95 * of_samples, kNormal95 * std::sqrt(variance / count)});
  }
  return worst;
}

std::map<int64_t, std::string> RolesIn(const Profile& profile, const Family& family, Sources& sources) {
  std::map<int64_t, std::string> roles;
  for (const auto& [pid, trainer] : TrainersIn(profile, family, sources)) roles[pid] = "trainer";
  for (const Thread& thread : profile.threads) {
    if (IsWorker(profile, thread)) roles[thread.pid] = "loader";
  }
  return roles;
}

std::vector<record::RankInfo> RanksOf(const Profile& profile, const Family& family, Sources& sources,
                                      int samples_per_s, int64_t end_ns) {
  std::vector<record::RankInfo> ranks;
  const std::map<int64_t, Trainer> trainers = TrainersIn(profile, family, sources);
  for (const auto& [pid, trainer] : trainers) {
    const int64_t above = family.TrainerOf(pid);
    if (above != pid && trainers.contains(above)) continue;  // a loader worker whose dataset runs a network
    ranks.push_back(RankBuilder(profile, trainer, sources, samples_per_s, end_ns).Build(family));
  }
  Number(ranks);
  return ranks;
}

}  // namespace fullbore::stacks
