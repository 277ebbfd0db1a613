#include "fleet/steady_state.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "explain/diagnose/thresholds.h"

namespace fullbore::fleet {

namespace {

using diagnose::Diagnosis;
using diagnose::Finding;
using record::HostOther;
using record::Share;
using Shares = std::map<std::string, double>;  // of a rank's step

constexpr std::string_view kHostOther = "host_other";

// The findings that name what the device waits for, and what it computes for nothing; with the shares of the step that
// they are about.
struct About {
  std::string_view finding;
  Kind kind;
  std::string_view share, and_share = "";
};
constexpr std::array kAbout = {
    About{"input-bound", Kind::kWaste, "data_wait"},
    About{"worker-overcommit", Kind::kWaste, "data_wait"},
    About{"straggler", Kind::kWaste, "comm_exposed"},
    About{"comm-bound", Kind::kWaste, "comm_exposed"},
    About{"launch-bound", Kind::kWaste, "launch"},
    About{"sync-bound", Kind::kWaste, "sync"},
    About{"copy-bound", Kind::kWaste, "copy_exposed"},
    About{"recompilation", Kind::kWaste, kHostOther},
    About{"host-other", Kind::kWaste, kHostOther},
    About{"instrumentation", Kind::kWaste, kHostOther},
    About{"uneven-last-batch", Kind::kWaste, kHostOther},
    About{"recomputation", Kind::kRecomputation, "compute"},
    About{"padding", Kind::kPadding, "forward", "backward"},
    About{"inefficient-kernels", Kind::kSlowKernels, "compute"},
};

double Of(const Shares& shares, std::string_view name) {
  const auto found = name.empty() ? shares.end() : shares.find(std::string(name));
  return found == shares.end() ? 0 : found->second;
}

// What a rank's steps say of a stretch: those that begin in it.
struct Sums {
  int64_t wall_ns = 0;
  record::ShareTimes share_ns{};
  std::array<int64_t, record::kHostOtherCount> host_other_ns{};

  template <typename Steps>
  void Add(const Steps& of) {
    for (size_t i = 0; i < record::kShareCount; ++i) {
      share_ns[i] += of.share_ns[i];
      wall_ns += of.share_ns[i];
    }
    for (size_t i = 0; i < record::kHostOtherCount; ++i) host_other_ns[i] += of.host_other_ns[i];
  }
  double Ratio(int64_t ns) const {
    return wall_ns > 0 ? static_cast<double>(ns) / static_cast<double>(wall_ns) : 0;
  }
  double Ratio(HostOther part) const { return Ratio(host_other_ns[static_cast<size_t>(part)]); }
};

Sums SumsOf(const record::RankInfo& rank, const Stretch& of) {
  const auto inside = [&](int64_t begin_ns) { return of.begin_ns <= begin_ns && begin_ns < of.end_ns; };
  Sums sums;
  int64_t windowed = 0;
  for (const record::StepWindow& window : rank.windows) windowed += window.steps;
  const bool all_in_full = windowed <= static_cast<int64_t>(rank.steps.size());
  for (const record::Step& step : rank.steps) {
    if (all_in_full && inside(step.end_ns - step.wall_ns)) sums.Add(step);
  }
  for (const record::StepWindow& window : rank.windows) {
    if (!all_in_full && inside(window.begin_ns)) sums.Add(window);
  }
  return sums;
}

// Kernels have a limit where the device's is known.
bool HasLimit(const record::Stage& stage) {
  return std::ranges::any_of(stage.ranks, [](const record::RankInfo& rank) {
    return rank.roofline && !rank.roofline->device.empty();
  });
}

class Division {
 public:
  Division(const record::Stage& stage, const Diagnosis& diagnosis, const Stretch& of, int64_t device_ns)
      : device_ns_(device_ns), left_ns_(device_ns) {
    for (const diagnose::RankShares& rank : diagnosis.ranks) {
      const auto info = std::ranges::find(stage.ranks, rank.rank, &record::RankInfo::rank);
      AddRank(rank.shares, info == stage.ranks.end() ? Sums{} : SumsOf(*info, of));
    }
    Put(Kind::kCheckpoint, "", Mean(checkpoint_));
    Put(Kind::kValidation, "", Mean(validation_));
    for (const Finding& finding : diagnosis.findings) {
      if (finding.id != "inefficient-kernels" || HasLimit(stage)) Take(finding);
    }
  }

  std::vector<Part> Parts() {
    Put(Kind::kWork, "", 1);
    return std::move(parts_);
  }

 private:
  void AddRank(const Shares& all, const Sums& sums) {
    Shares left = all;
    if (sums.wall_ns > 0) {
      left.clear();
      for (size_t i = 0; i < record::kShareCount; ++i)
        left[std::string(Name(static_cast<Share>(i)))] = sums.Ratio(sums.share_ns[i]);
    }
    checkpoint_.push_back(sums.Ratio(HostOther::kCheckpoint));
    validation_.push_back(sums.Ratio(HostOther::kValidation));
    double& other = left[std::string(kHostOther)];
    other = std::max(0.0, other - checkpoint_.back() - validation_.back());
    all_.push_back(all);
    left_.push_back(std::move(left));
  }

  static double Mean(const std::vector<double>& of_ranks) {
    double sum = 0;
    for (const double each : of_ranks) sum += each;
    return of_ranks.empty() ? 0 : sum / static_cast<double>(of_ranks.size());
  }

  void Take(const Finding& finding) {
    const auto about = std::ranges::find(kAbout, finding.id, &About::finding);
    if (about == kAbout.end() || finding.of_others || left_.empty()) return;
    // Checkpoints and validation are parts of their own: what remains must be worth a finding without them.
    if (about->share == kHostOther && finding.id == "host-other" &&
        Of(left_.front(), kHostOther) < diagnose::kHostOther.warning)
      return;
    double most = 0;
    for (const Shares& shares : all_)
      most = std::max(most, Of(shares, about->share) + Of(shares, about->and_share));
    if (most <= 0) return;
    const double part = std::clamp(finding.share / most, 0.0, 1.0);
    double taken = 0;  // of the mean rank's step
    for (Shares& shares : left_) {
      for (const std::string_view name : {about->share, about->and_share}) {
        const auto found = name.empty() ? shares.end() : shares.find(std::string(name));
        if (found == shares.end()) continue;
        taken += part * found->second / static_cast<double>(left_.size());
        found->second *= 1 - part;
      }
    }
    Put(about->kind, about->kind == Kind::kWaste ? finding.id : "", taken);
  }

  void Put(Kind kind, const std::string& cause, double ratio) {
    const auto wanted_ns =
        static_cast<int64_t>(std::clamp(ratio, 0.0, 1.0) * static_cast<double>(device_ns_));
    const int64_t ns = kind == Kind::kWork ? left_ns_ : std::min(left_ns_, wanted_ns);
    left_ns_ -= ns;
    if (ns > 0) parts_.push_back({kind, cause, ns});
  }

  int64_t device_ns_, left_ns_;
  std::vector<Shares> all_, left_;  // of each rank: of its whole steady state, and what nothing has taken
  std::vector<double> checkpoint_, validation_;
  std::vector<Part> parts_;
};

}  // namespace

std::vector<Part> Divide(const record::Stage& stage, const Diagnosis& diagnosis, const Stretch& of,
                         int64_t device_ns) {
  return Division(stage, diagnosis, of, device_ns).Parts();
}

}  // namespace fullbore::fleet
