// The knobs: what can be set in a training from outside, each a row: what it is, which values are legal, what it may
// change in the results, and how a person would write it into the script. Order: that in which they interact, so that
// each is tuned after what changes its best value.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace fullbore::tune {

struct Knob {
  std::string_view name;  // as in PyTorch: "num_workers"
  std::string_view what;  // "processes that load batches beside the training"
  // How it may change training results; empty: it changes only the time.
  std::string_view changes;
  // Which values are legal, in words; empty where `value` is one.
  std::string (*why_not)(const nlohmann::json& value);
  // "DataLoader(num_workers=4)"
  std::string (*in_code)(const nlohmann::json& value);

  std::string WhyNotLegal(const nlohmann::json& value) const { return why_not(value); }
};

std::span<const Knob> AllKnobs();
const Knob* KnobNamed(std::string_view name);  // nullptr if there is none
// Whether a person would write it as an argument of DataLoader.
bool IsOfLoader(const Knob& knob, const nlohmann::json& value);

}  // namespace fullbore::tune
