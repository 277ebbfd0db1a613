#include "explain/diagnose/comm_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "record/json_text.h"
#include "timeline/device/kinds.h"

namespace fullbore::diagnose {

namespace {

using record::CollectiveStats;

constexpr char kDdp[] = "DistributedDataParallel", kFsdp[] = "FullyShardedDataParallel",
               kFsdp2[] = "fully_shard", kDeepSpeed[] = "DeepSpeed";

constexpr char kTopology[] =
    "check the topology: NVLink or the right network interface (NCCL_DEBUG=INFO), the ranks of a node next "
    "to each other";
constexpr char kBuckets[] =
    "let communication overlap the backward pass: DDP's bucket_cap_mb and gradient_as_bucket_view";

bool Shards(const std::string& wrapper) {
  return wrapper == kFsdp || wrapper == kFsdp2 || wrapper == kDeepSpeed;
}

// Whether anything says that gradients are computed at all.
bool Trains(const record::RankInfo& info) {
  if (info.facts.contains("optimizer") || info.facts.contains("distributed")) return true;
  return info.graph && std::ranges::any_of(info.graph->nodes, [](const record::StepGraph::Node& node) {
           return node.work == record::Work::kDevice && node.lane != record::Lane::kComm &&
                  node.phase == record::Phase::kBackward;
         });
}

Exchange ExchangeOf(const CollectiveStats& stats, const std::string& wrapper, bool trains) {
  const std::string_view kind = timeline::CollectiveOfKernel(stats.kind);
  if (kind == "all_to_all") return Exchange::kAllToAll;
  if (kind == "send_recv" || stats.kind == "send" || stats.kind == "recv") return Exchange::kPipeline;
  if (!stats.of_gradients) return Exchange::kActivations;
  if (!trains) return Exchange::kUnknown;
  if (kind == "all_gather" || kind == "reduce_scatter" || (kind == "all_reduce" && Shards(wrapper)))
    return Exchange::kSharded;
  return kind == "all_reduce" || wrapper == kDdp ? Exchange::kGradients : Exchange::kUnknown;
}

// NOLINTBEGIN(bugprone-suspicious-missing-comma): sentences of two lines
std::vector<std::string> OfSharded(const Program& program) {
  const std::string& wrapper = program.wrapper;
  if (wrapper == kFsdp)
    return {
        "gather weights ahead of their use: forward_prefetch=True, "
        "backward_prefetch=BackwardPrefetch.BACKWARD_PRE",
        "keep weights from the forward pass to the backward pass: ShardingStrategy.SHARD_GRAD_OP; or shard "
        "within each node only: HYBRID_SHARD; both take more memory",
        "larger units (auto_wrap_policy), whose collectives use the links better", ToSendLess(program).fix,
        kTopology};
  if (wrapper == kFsdp2)
    return {
        "gather weights ahead of their use: set_modules_to_forward_prefetch and "
        "set_modules_to_backward_prefetch",
        "keep weights from the forward pass to the backward pass: fully_shard(..., "
        "reshard_after_forward=False); or "
        "shard within each node only, by a mesh of two dimensions; both take more memory",
        "larger units, whose collectives use the links better", ToSendLess(program).fix, kTopology};
  if (wrapper == kDeepSpeed)
    return {"\"overlap_comm\": true, and larger buckets: reduce_bucket_size, stage3_prefetch_bucket_size",
            "ZeRO stage 2 instead of 3 where the weights fit; or weights kept within each node: "
            "zero_hpz_partition_size",
            "gradient_accumulation_steps: gradients are reduced less often", kTopology};
  return {
      "gather weights ahead of their use, in larger units: the wrapper's prefetching and the size of what it "
      "wraps",
      "keep weights from the forward pass to the backward pass where memory allows, or shard within each "
      "node only",
      "gradients and weights sent in 16 bit, which changes the numerics slightly", kTopology};
}
// NOLINTEND(bugprone-suspicious-missing-comma)

std::vector<std::string> OfActivations(const Program& program) {
  std::vector<std::string> fix = {
      "a smaller tensor parallel group where the model fits: each split layer sends its activations through "
      "it",
      "tensor parallelism within a node only, over NVLink"};
  if (program.engine.empty())
    fix.emplace_back(
        "sequence parallelism, and these collectives overlapped with the products beside them "
        "(Megatron-LM: --sequence-parallel, --tp-comm-overlap)");
  else
    fix.emplace_back("larger batches for each iteration, and more replicas instead of larger groups");
  fix.emplace_back(kTopology);
  return fix;
}

// Of what collectives take, what those do that reduce: by the device's record, or on a CPU by the calls, which wait there.
double ReducingPart(const record::RankInfo& info, double reducing_ns, double collectives_ns) {
  // Weights are gathered in the forward pass and mostly again in the backward pass, and gradients are as large.
  constexpr double kOneOfThree = 1.0 / 3;
  if (info.tables && !info.tables->collectives.empty()) {
    reducing_ns = collectives_ns = 0;
    for (const CollectiveStats& stats : info.tables->collectives) {
      const auto exposed_ns = static_cast<double>(stats.exposed_ns);
      collectives_ns += exposed_ns;
      if (timeline::CollectiveOfKernel(stats.kind).find("reduce") != std::string_view::npos)
        reducing_ns += exposed_ns;
    }
  } else if (info.device != "cpu") {
    return kOneOfThree;
  }
  return collectives_ns > 0 ? std::min(reducing_ns / collectives_ns, 1.0) : kOneOfThree;
}

}  // namespace

Exchange ExchangeOf(const record::RankInfo& info) {
  const Program program = ProgramOf(info);
  if (!info.tables || info.tables->collectives.empty())
    return Shards(program.wrapper) ? Exchange::kSharded : Exchange::kGradients;
  const bool trains = Trains(info);
  std::map<Exchange, int64_t> exposed_ns;
  for (const CollectiveStats& stats : info.tables->collectives)
    exposed_ns[ExchangeOf(stats, program.wrapper, trains)] += stats.exposed_ns;
  return std::ranges::max_element(exposed_ns, {}, [](const auto& each) { return each.second; })->first;
}

std::vector<std::string> FixesOf(Exchange exchange, const Program& program) {
  switch (exchange) {
    case Exchange::kGradients:
      return {
          "synchronise less often: gradient accumulation, with the forward and backward passes under "
          "model.no_sync()",
          kBuckets, ToSendLess(program).fix, kTopology};
    case Exchange::kSharded:
      return OfSharded(program);
    case Exchange::kActivations:
      return OfActivations(program);
    case Exchange::kAllToAll:
      return {"send fewer bytes: activations in 16 or 8 bit",
              "keep the ranks that exchange with each other within a node, or make their group smaller",
              "overlap: two halves of a batch, of which one computes while the other is exchanged",
              "even out what each rank receives (experts, tables): all wait for the one with most",
              kTopology};
    case Exchange::kPipeline:
      return {"more micro-batches a step: each stage waits less for the first and the last",
              "a schedule in which stages wait less: 1F1B, interleaved", "stages that take equally long",
              kTopology};
    case Exchange::kUnknown:
      break;
  }
  return {kTopology,
          "fewer or smaller collectives, or such that something computes beside them: what these carry was "
          "not recorded"};
}

std::optional<EarlyExchanges> EarlyExchangesOf(const record::RankInfo& info) {
  constexpr double kWorthAWord = 0.2;
  const auto fact = info.facts.find("exchanges");
  if (fact == info.facts.end()) return std::nullopt;
  const nlohmann::json seen = record::ParseJson(fact->second);
  const auto number = [&](const char* key) { return record::NumberIn(seen, key); };
  const double steps = number("steps"), passes = number("passes"), exchanging = number("exchanging");
  if (steps < 1 || exchanging < 1 || exchanging > passes) return std::nullopt;
  const double part = number("early") / exchanging;
  if (part < kWorthAWord || part >= 1) return std::nullopt;
  EarlyExchanges early{passes / steps, part, exchanging == passes};
  if (Shards(ProgramOf(info).wrapper))
    early.reducing = ReducingPart(info, number("reducing_ns"), number("collectives_ns"));
  return early;
}

std::string ToExchangeOnce(const EarlyExchanges& early, const Program& program) {
  // fully_shard has no no_sync(), and takes the call's word at each backward pass.
  const char* change =
      program.wrapper == kFsdp2
          ? "model.set_requires_gradient_sync(False) before all but the last, and (True) before that"
          : "put all but the last, each with its forward pass, under model.no_sync()";
  return fmt::format(
      "{} backward passes a step, {} all gradients: {}, if nothing reads or clears the gradients "
      "in between{}",
      FormatCount(std::round(early.passes * 10) / 10),
      early.all ? "each exchanges"
                : fmt::format("and {} of the exchanges are not the last to", FormatPercent(early.part)),
      change, Shards(program.wrapper) ? "; takes the memory of whole gradients on each rank" : "");
}

// pytorch.org/docs/stable: DistributedDataParallel, fsdp.html, distributed.fsdp.fully_shard, ddp_comm_hooks.
Words ToOverlap(const Program& program) {
  if (program.wrapper == kDdp) return {"", kBuckets};
  if (Shards(program.wrapper)) return {"", OfSharded(program).front()};
  return {"torch.nn.parallel.DistributedDataParallel(model)",
          "let communication overlap the backward pass: DistributedDataParallel exchanges gradients while "
          "those that follow are computed"};
}

Words ToSendLess(const Program& program) {
  if (program.wrapper == kFsdp)
    return {"",
            "send less: MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16), which "
            "changes the numerics"};
  if (program.wrapper == kFsdp2)
    return {"",
            "send less: MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16), which "
            "changes the numerics"};
  if (program.wrapper == kDeepSpeed) return {"", "send less: \"communication_data_type\": \"bfp16\""};
  return {
      "",
      "send less: 16-bit compression hooks (torch.distributed.algorithms.ddp_comm_hooks), which change the "
      "numerics slightly"};
}

}  // namespace fullbore::diagnose
