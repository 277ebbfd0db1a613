// How the run ended.
#include <fmt/format.h>

#include "base/text.h"
#include "watch/alert/sight.h"

namespace fullbore::watch {

namespace {

constexpr int kSignalled = 128, kCtrlC = 130;

std::string InWords(int status) {
  return status > kSignalled ? fmt::format("was ended by signal {}", status - kSignalled)
                             : fmt::format("ended with status {}", status);
}

}  // namespace

Sight RunFailed::Look(const View& view) const {
  const record::Stage& stage = view.moment.stage();
  Sight sight;
  sight.state = Sight::State::kOver;
  sight.what = "the run goes on";
  if (!view.moment.ended()) return sight;
  sight.what = "the run ended successfully";
  const std::string after =
      fmt::format("after {} steps", FormatCount(static_cast<double>(view.moment.past().steps())));
  if (view.moment.cut_off()) {
    sight.what = "the run was cut off: its recorder is gone or cannot write, " + after;
    sight.fix = {
        "see whether the machine or the job was stopped; `fullbore explain` shows what was recorded"};
  } else if (stage.out_of_memory) {
    sight.what = "the run was killed for lack of memory, " + after;
    sight.fix = {"fullbore help host-memory"};
  } else if (stage.exit_status.value_or(0) != 0 && *stage.exit_status != kCtrlC) {
    sight.what = fmt::format("the run {}, {}", InWords(*stage.exit_status), after);
    sight.fix = {"its output says why; `fullbore explain` shows what was recorded until then"};
  } else {
    return sight;
  }
  sight.state = Sight::State::kHolds;
  sight.since_ns = stage.end_ns;
  return sight;
}

}  // namespace fullbore::watch
