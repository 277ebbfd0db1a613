// The knobs: what can be set in a training from outside, each a row: what it is, which values are legal, whether the
// search turns it, what it may change in the results, and how a person would write it into the script. Order: that in
// which they interact, so that each is tuned after what changes its best value.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::tune {

// Which part of a training it changes.
enum class Part : uint8_t {
  kArithmetic,   // precision and kernels, and nothing else
  kLoading,      // how the same batches are loaded
  kOtherLoader,  // which may deliver other batches
  kOther,
};
// Whether the search tries it unasked.
enum class Searched : uint8_t {
  kAlways,
  kIfAsked,  // only by name: it changes training results
  kNever,    // only values that the user gives
};

struct Knob {
  std::string_view name;    // as in PyTorch: "num_workers"
  std::string_view called;  // its name in --knobs, "workers", which several knobs may share; may be empty
  Part part;
  Searched searched;
  std::string_view what;  // "processes that load batches beside the training"
  // How it may change training results; empty: it changes only the time.
  std::string_view changes;
  // What legal values are, in words; empty if `value` is one.
  std::string (*why_not)(const nlohmann::json& value);
  // "DataLoader(num_workers=4)"
  std::string (*in_code)(const nlohmann::json& value);

  std::string WhyNotLegal(const nlohmann::json& value) const { return why_not(value); }
};

std::span<const Knob> AllKnobs();
const Knob* KnobNamed(std::string_view name);  // nullptr if there is none
// "num_workers"; or several: "precision", "loader" (what the search turns of it), "all". Empty if there are none.
std::vector<std::string> KnobsCalled(std::string_view name);
// Whether a person would write it as an argument of DataLoader.
bool IsOfLoader(const Knob& knob, const nlohmann::json& value);

}  // namespace fullbore::tune
