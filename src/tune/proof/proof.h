// Whether a setting is faster than the script as it is, from pairs of trials that had no part in choosing it: of several
// settings, the one that looked best was also the luckiest. The two of a pair run one after the other, now one first and
// now the other, so that what changes on the machine is in both. Two commands are compared in the same way (contest.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/trial/trial.h"

namespace fullbore::tune {

enum class Verdict : uint8_t {
  kOpen,    // more pairs would have to tell
  kFaster,  // the low end of the interval is above 1
  kAsFast,  // asks for less, and loses no more than the user allows
  kNoGain,  // at most a gain that is not worth a change
  kFailed,  // it died, or filled the memory
};
std::string_view Name(Verdict verdict);  // "open", "faster", "as-fast", "no-gain", "failed"

struct Proof {
  Settings settings;
  struct Pair {
    Rate before, after;      // the script as it is, the setting
    bool in_slices = false;  // of the same time (turns.h)
  };
  std::vector<Pair> pairs;
  bool asks_for_less = false;  // workers, batch or memory: worth it at the same speed, too
  double within = 0.05;        // what may be lost for that
  Verdict verdict = Verdict::kOpen;

  struct Gain {
    double expected = 1, low = 1, high = 1;
  };
  // How many times as fast, with an interval that holds in 95 % of all proofs although it is looked at after each pair;
  // nothing before the second.
  std::optional<Gain> gain() const;

  // So many pairs in all, if the others are like these, would tell the gain from this one; nothing where even
  // kMostPairs would not.
  std::optional<size_t> pairs_to_tell(double from) const;

  void Add(Pair pair);  // and judges anew
  size_t pairs_in_slices() const;
  bool recommends() const { return verdict == Verdict::kFaster || verdict == Verdict::kAsFast; }
};

// Whether the interval lies on one side of each of these gains.
bool IsTold(const Proof::Gain& gain, const std::vector<double>& from);
nlohmann::ordered_json ToJson(const Proof::Gain& gain);
// "1.67x (1.61 to 1.72)", with ` at 95 %` or whatever `level` is; "1.46x (the pairs differ too much to tell)" where either
// end may be ten times away.
std::string GainText(const Proof::Gain& gain, std::string_view level = "");

// Then a gain that is still open will not be told from noise in any reasonable time.
inline constexpr size_t kMostPairs = 8;
// A smaller gain is not worth a change, nor a proof.
inline constexpr double kMatters = 1.02;

// "3 pairs of trials, slices of both in turns", or as it was for some of them and for the others.
std::string PairsText(const Proof& proof);

enum class Side : uint8_t { kBaseline, kCandidate };
std::string_view Name(Side side);  // "baseline", "candidate"

struct Made {
  Side side;
  Trial trial;
};

struct PairOfTrials {
  Trial before, after;
};
// Makes the pair that follows so many: one first, then the other first, so that a machine that becomes slower all the
// time favours none. Nothing where one of the two could not be made.
std::optional<PairOfTrials> MakePair(size_t earlier,
                                     const std::function<std::optional<Trial>(bool as_it_is)>& make);

}  // namespace fullbore::tune
