// What the kernel says of a process, with names and environments that anybody may choose: whatever it is, who holds a
// device stays one line of the page.
#include <algorithm>
#include <cstdlib>

#include "agent/allocation.h"
#include "agent/holder.h"
#include "record/openmetrics.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace agent = fullbore::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const agent::Membership in = agent::MembershipOf(text);
  (void)agent::JobInTitle(text);
  const agent::Allocation given = agent::AllocationInEnvironment(text);
  (void)agent::Includes(given, {0, 0, "GPU-1", false});
  (void)agent::AllocationInDevicesList(text);
  fullbore::record::OpenMetrics page;
  page.AddGauge(
      "held", "", "h",
      {{"job", in.holder.job}, {"unit", in.holder.unit}, {"step", in.step}, {"text", std::string(text)}}, 1);
  const std::string said = page.Text();
  if (std::ranges::count(said, '\n') != 4) abort();
  return 0;
}
