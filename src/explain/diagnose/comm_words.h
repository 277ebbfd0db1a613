// What can be done about collectives, by what they carry and who makes them: advice for DistributedDataParallel is
// wrong for FSDP, and both for the all-reduces of tensor parallel layers and the all-to-all of experts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "explain/diagnose/program.h"
#include "record/recording.h"

namespace fullbore::diagnose {

enum class Exchange : uint8_t {
  kUnknown,      // what the collectives carry is not known
  kGradients,    // all-reduces, as DistributedDataParallel makes them
  kSharded,      // weights gathered and gradients scattered: FSDP, ZeRO
  kActivations,  // of layers that are split over ranks
  kAllToAll,     // of experts or embeddings
  kPipeline,     // from one stage to the next
};

// Of the collectives that cost most. Without a record of the device (a run under the hook), gradients.
Exchange ExchangeOf(const record::RankInfo& info);

// Each one thing to do, in the wrapper's own words.
std::vector<std::string> FixesOf(Exchange exchange, const Program& program);

// Backward passes whose gradients are exchanged although more is added to them before the optimizer steps.
struct EarlyExchanges {
  double passes = 0;  // backward passes a step
  double part = 0;    // of all exchanges, those that could be left out
  bool all = false;   // every pass exchanges
  // Of what collectives take, what those do that reduce gradients; the others gather weights.
  double reducing = 1;
};
// Nothing where it was not seen, or where hardly any could be left out.
std::optional<EarlyExchanges> EarlyExchangesOf(const record::RankInfo& info);
std::string ToExchangeOnce(const EarlyExchanges& early, const Program& program);

// To let the exchange of gradients overlap the backward pass, and to send them in 16 bit.
Words ToOverlap(const Program& program);
Words ToSendLess(const Program& program);

}  // namespace fullbore::diagnose
