// Turns samples of stacks into the ranks of a recording. Each second of samples becomes one window and one step of that
// length: no steps are seen, but all that is told of shares, and of how sure they are, rests on such windows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "measure/stacks/family.h"
#include "measure/stacks/profile.h"
#include "measure/stacks/source.h"
#include "record/recording.h"

namespace fullbore::stacks {

inline constexpr char kSampledFact[] = "sampled";  // {"samples": 1830, "points": 0.031, "per_s": 61}

// `end_ns`: of the last sample. Ranks in the order of their numbers; empty where no process was seen to train.
// Source texts have their secrets masked.
std::vector<record::RankInfo> RanksOf(const Profile& profile, const Family& family, Sources& sources,
                                      int samples_per_s, int64_t end_ns);

// By process: "trainer" where a pass was seen, "loader" where a DataLoader's worker was.
std::map<int64_t, std::string> RolesIn(const Profile& profile, const Family& family, Sources& sources);

// Half the width of the 95 % interval of the share that is known worst, as a ratio of the time: from how much it varies
// from window to window (batch means), and at least from the number of samples (the normal approximation of a
// binomial proportion).
double UncertaintyOf(const std::vector<record::Step>& windows, int64_t samples);

}  // namespace fullbore::stacks
