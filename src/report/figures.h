// The few figures about device and host to show beside the verdict, from the summaries of the recorded
// series. What was not recorded is absent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/diagnose/diagnosis.h"

namespace fullbore::report {

struct Figure {
  std::string label;  // "SM"
  std::string value;  // "47 %"
};

std::vector<Figure> DeviceFigures(const diagnose::Diagnosis& diagnosis);
std::vector<Figure> HostFigures(const diagnose::Diagnosis& diagnosis);

// "its first 240 steps took 52 ms, the other 900 40 ms: ..."; empty where the steady state has one regime.
std::string RegimesText(const diagnose::Diagnosis& d);

// What a step is: "step" of a training, "iteration" of a serving engine; "period" of what repeats unmarked, "stretch" of
// what does not.
std::string StepWord(const diagnose::Diagnosis& diagnosis);

// "sampled, ±3 points": in place of a step's time where none was seen.
std::string SampledText(const diagnose::Sampling& sampled);
// "640 samples/s", or "4.9 steps/s" if samples are not known; empty where what repeats may not be steps.
std::string RateText(const diagnose::Diagnosis& diagnosis, double times_faster = 1);
// How well the samples per second are known, after them: " ±12"; where that would reach below nothing, " (0 to 114)".
std::string RateRangeText(const diagnose::Diagnosis& diagnosis);

// "81,920 tokens/s, 31,300 without padding"; empty where tokens are not known.
std::string TokenRateText(const diagnose::Diagnosis& d);

// "412 TFLOP/s, 42 % of the peak of H100 SXM in bfloat16 (MFU)", "at least 12 GFLOP/s, without Experts"; empty where the
// model's operations are not known.
std::string FlopsText(const diagnose::Diagnosis& d);
// "40 decode iterations, 62 % of the time, 16 tokens each: 2,130 tokens/s".
std::string ServedText(const diagnose::ServedPhase& phase);

// "1.63x to 1.71x", "1.03x" if both ends read the same; empty if no prediction was made.
std::string GainText(const diagnose::Finding& finding);

// What the recommended change costs besides making it: ", takes more memory"; "" where that is nothing.
std::string CostText(const diagnose::Finding& finding);

// "train.py:57", without the directories; empty if the finding has no place.
std::string PlaceText(const diagnose::Finding& finding);

// Whether the verdict is that the recording cannot be judged.
bool IsRefused(const diagnose::Diagnosis& diagnosis);
// What limits the verdict, to be read before it, without the refusal that is the verdict; and what is worth knowing
// beside it.
std::vector<std::string> LimitTexts(const diagnose::Diagnosis& diagnosis);
std::vector<std::string> CaveatTexts(const diagnose::Diagnosis& diagnosis);

// The refusal, the first finding in one sentence, or a sentence saying that there is none.
std::string VerdictText(const diagnose::Diagnosis& diagnosis);

// "the command was killed for memory (exit status 137)"; empty if it ended well or its end is not known.
std::string FailureText(const diagnose::Diagnosis& diagnosis);

// What was run on what: model, devices or processor, precision; the parts that are known.
std::vector<std::string> SubjectParts(const diagnose::Diagnosis& diagnosis);

}  // namespace fullbore::report
