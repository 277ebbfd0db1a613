// How certain the shares of a step's time are, and so whether a share that differs between two runs has moved.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::diagnose {

// By how much each share may be off: half of its 95 % interval, as a ratio of the step. All shares, by name.
using ShareNoise = std::map<std::string, double>;

// Of the stage that Diagnose judges. From batch means, as the throughput's; nothing where too few steps were kept.
std::optional<ShareNoise> ShareNoiseOf(const record::Recording& recording, const std::string& stage = "");

// By how much a share changed at least and at most, at 95 %: a ratio of the step. With what two starts of one program
// differ by (between_starts.h).
struct ShareMove {
  double low = 0, high = 0;

  bool IsMoreThanNoise() const { return low > 0 || high < 0; }
};
using ShareMoves = std::map<std::string, ShareMove>;

// Of all shares; empty where one of the two does not say how certain its are.
ShareMoves ShareMovesOf(const Diagnosis& before, const std::optional<ShareNoise>& noise_before,
                        const Diagnosis& after, const std::optional<ShareNoise>& noise_after);

}  // namespace fullbore::diagnose
