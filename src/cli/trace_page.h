// What the page of a trace has beyond the report: the tables of `explain --section`, the device's limits for the picture of
// the roofline, and the stacks of the host. Bounded: the first rows of the first ranks, and how many there are.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "timeline/device/trace.h"

namespace fullbore::cli {

class TracePage {
 public:
  TracePage();
  ~TracePage();

  void Take(const timeline::DeviceTrace& trace);  // of each rank, while it is read
  // Into what the page is made of.
  void AddTo(nlohmann::ordered_json& page) const;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace fullbore::cli
