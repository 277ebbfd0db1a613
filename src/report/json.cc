#include "report/json.h"

#include <cmath>

#include "base/printable.h"
#include "report/device_memory.h"
#include "report/explained.h"

namespace fullbore::report {

namespace {

using diagnose::Diagnosis;
using Json = nlohmann::ordered_json;

// NaN and infinity mean unknown, and so are absent.
void Put(Json& object, const char* key, double value) {
  if (std::isfinite(value)) object[key] = value;
}
template <typename T>
void Put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}
void Put(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

Json ObjectOf(const auto& map) {
  Json object = Json::object();
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

Json Window(const Diagnosis& d) {
  Json window = {{"begin_ns", d.begin_ns},
                 {"end_ns", d.end_ns},
                 {"steps", d.sampled ? 0 : d.steps},
                 {"warmup_steps", d.warmup_steps}};
  Put(window, "warmup_why", d.warmup_why);
  for (const diagnose::Regime& regime : d.regimes)
    window["regimes"].push_back({{"steps", regime.steps}, {"mean_step_ns", regime.mean_step_ns}});
  for (const fitness::Condition& condition : d.fitness.conditions)
    if (condition.id == "noise") window["noise"] = condition.says;
  if (d.sampled) window["sampled"] = {{"samples", d.sampled->samples}, {"points", d.sampled->points}};
  return window;
}

Json Throughput(const Diagnosis& d) {
  Json throughput = Json::object();
  Put(throughput, "samples_per_s", d.samples_per_s);
  if (d.samples_per_s_low && d.samples_per_s_high) {
    throughput["ci95_samples_per_s"] = {*d.samples_per_s_low, *d.samples_per_s_high};
  }
  Put(throughput, "steps_per_s", d.steps_per_s);
  Put(throughput, "tokens_per_s", d.tokens_per_s);
  Put(throughput, "useful_tokens_per_s", d.useful_tokens_per_s);
  if (d.flops) {
    Put(throughput, "model_flops_per_s", d.flops->per_s);
    Put(throughput, "mfu", d.flops->mfu);
    if (d.flops->mfu) throughput["mfu_of"] = d.flops->peak;
    if (!d.flops->unknown.empty()) throughput["modules_not_counted"] = d.flops->unknown;
  }
  return throughput;
}

Json Serving(const Diagnosis& d) {
  Json serving = {{"engine", d.engine}, {"phases", Json::array()}};
  for (const diagnose::ServedPhase& phase : d.served) {
    Json object = {{"phase", phase.phase}, {"iterations", phase.iterations}, {"share", phase.share}};
    Put(object, "tokens_per_s", phase.tokens_per_s);
    Put(object, "tokens_per_iteration", phase.tokens_per_iteration);
    serving["phases"].push_back(std::move(object));
  }
  return serving;
}

Json StepTime(const Diagnosis& d) {
  Json step_time = Json::object();
  if (!d.sampled) {
    Put(step_time, "mean_ns", d.mean_step_ns);
    Put(step_time, "median_ns", d.median_step_ns);
    Put(step_time, "p95_ns", d.p95_step_ns);
  }
  step_time["shares"] = ObjectOf(d.shares);
  step_time["shares_of"] = d.device_shares ? "device" : "training_thread";
  if (!d.host_other_parts.empty()) step_time["host_other_parts"] = ObjectOf(d.host_other_parts);
  Put(step_time, "recomputed", d.recomputed);
  return step_time;
}

Json CollectiveOf(const diagnose::CollectiveSummary& c) {
  Json collective = {{"kind", c.kind}};
  Put(collective, "group", c.group);
  Put(collective, "group_size", c.group_size);
  collective["count"] = c.count;
  Put(collective, "bytes", c.bytes);
  collective["sum_ns"] = c.sum_ns;
  collective["exposed_ns"] = c.exposed_ns;
  Put(collective, "wait_ns", c.wait_ns);
  Put(collective, "algorithm_bandwidth", c.algorithm_bandwidth);
  Put(collective, "bus_bandwidth", c.bus_bandwidth);
  return collective;
}

Json Rank(const diagnose::RankShares& r) {
  Json rank = {{"rank", r.rank}};
  Put(rank, "device", r.device);
  if (r.steps > 0) {
    rank["steps"] = r.steps;
    Put(rank, "mean_step_ns", r.mean_step_ns);
  }
  if (!r.shares.empty()) rank["shares"] = ObjectOf(r.shares);
  Put(rank, "span_ns", r.span_ns);
  Put(rank, "busy_ns", r.busy_ns);
  if (r.span_ns && r.busy_ns) rank["idle_ns"] = *r.span_ns - *r.busy_ns;
  Put(rank, "compute_ns", r.compute_ns);
  Put(rank, "comm_ns", r.comm_ns);
  Put(rank, "comm_exposed_ns", r.comm_exposed_ns);
  Put(rank, "comm_overlap_ratio", r.comm_overlap_ratio);
  Put(rank, "copy_ns", r.copy_ns);
  Put(rank, "copy_exposed_ns", r.copy_exposed_ns);
  Put(rank, "kernels", r.kernels);
  if (!r.kernel_class_ns.empty()) rank["kernel_classes"] = ObjectOf(r.kernel_class_ns);
  for (const auto& collective : r.collectives) rank["collectives"].push_back(CollectiveOf(collective));
  return rank;
}

Json NodeOf(const diagnose::NodeSummary& n) {
  Json node = {{"name", n.name}, {"ranks", n.ranks}};
  if (n.mean_step_ns > 0) Put(node, "mean_step_ns", n.mean_step_ns);
  if (!n.shares.empty()) node["shares"] = ObjectOf(n.shares);
  if (n.cut_off) node["cut_off"] = true;
  for (const auto& [metric, what, here, elsewhere] : n.differs)
    node["differs"].push_back({{"metric", metric}, {"what", what}, {"here", here}, {"elsewhere", elsewhere}});
  return node;
}

Json Resource(const diagnose::Resource& r) {
  Json resource = Json::object();
  Put(resource, "mean", r.mean);
  Put(resource, "p50", r.p50);
  Put(resource, "p95", r.p95);
  Put(resource, "max", r.max);
  resource["unit"] = r.unit;
  return resource;
}

Json EvidenceOf(const diagnose::Evidence& e) {
  Json evidence = {{"what", e.what}};
  Put(evidence, "value", e.value);
  evidence["unit"] = e.unit;
  evidence["source"] = e.source;
  Put(evidence, "series", e.series);
  Put(evidence, "begin_ns", e.begin_ns);
  Put(evidence, "end_ns", e.end_ns);
  return evidence;
}

Json PlaceOf(const diagnose::Place& p) {
  Json place = {{"file", p.file}};
  if (p.line > 0) place["line"] = p.line;
  Put(place, "text", p.text);
  if (p.share > 0) Put(place, "share", p.share);
  return place;
}

Json SpeedupOf(const diagnose::Speedup& s) {
  Json speedup = Json::object();
  Put(speedup, "expected", s.expected);
  Put(speedup, "low", s.low);
  Put(speedup, "high", s.high);
  return speedup;
}

Json FindingOf(const diagnose::Finding& f) {
  Json finding = {{"id", f.id}};
  Put(finding, "cause", f.cause);
  finding["severity"] = Name(f.severity);
  Put(finding, "share", f.share);
  finding["title"] = f.title;
  finding["evidence"] = Json::array();
  for (const auto& evidence : f.evidence) finding["evidence"].push_back(EvidenceOf(evidence));
  finding["fix"] = f.fix;
  Put(finding, "change", f.change);
  if (!f.where.empty()) {
    for (const auto& place : f.where) finding["where"].push_back(PlaceOf(place));
  }
  if (f.doubtful) finding["doubtful"] = true;
  if (!f.method.empty()) {
    finding["speedup"] = SpeedupOf(f.speedup);
    finding["method"] = f.method;
    finding["costs"] = replay::Name(f.costs);
  }
  return finding;
}

Json RungOf(const diagnose::Rung& r) {
  Json rung = {{"change", r.change}, {"does", r.does}, {"assumes", r.assumes}, {"costs", r.costs}};
  Put(rung, "step_ns", r.step_ns);
  rung["speedup"] = SpeedupOf(r.speedup);
  for (const diagnose::ClassTime& time : r.classes) {
    Json one = {{"class", time.kernel_class}};
    Put(one, "now_ns", time.now_ns);
    Put(one, "expected_ns", time.expected_ns);
    Put(one, "low_ns", time.low_ns);
    Put(one, "high_ns", time.high_ns);
    rung["classes"].push_back(std::move(one));
  }
  return rung;
}

Json ReplayOf(const diagnose::ReplayReport& r) {
  Json replay = Json::object();
  Put(replay, "error", r.error);
  Put(replay, "unexplained", r.unexplained);
  replay["assumed"] = r.assumed;
  if (!r.device.empty()) replay["device"] = r.device;
  replay["ladder"] = Json::array();
  for (const auto& rung : r.ladder) replay["ladder"].push_back(RungOf(rung));
  for (const auto& rung : r.what_if) replay["what_if"].push_back(RungOf(rung));
  for (const auto& [change, why] : r.refused) replay["refused"].push_back({{"change", change}, {"why", why}});
  return replay;
}

Json WindowReportOf(const diagnose::WindowReport& w) {
  Json window = {{"first_step", w.first_step}, {"steps", w.steps}};
  Put(window, "mean_step_ns", w.mean_step_ns);
  window["of"] = w.device ? "device" : "cpu";
  if (w.device) window["shares"] = ObjectOf(w.shares);
  for (const auto& one : w.operators) {
    Json entry = {{"name", one.name}, {"count", one.count}};
    Put(entry, "ns", one.ns);
    Put(entry, "share", one.share);
    Put(entry, "flops_per_s", one.flops_per_s);
    window["operators"].push_back(std::move(entry));
  }
  return window;
}

Json MemoryOf(const diagnose::MemoryBudget& m) {
  Json memory = {{"rank", m.rank}, {"total", m.total}, {"parts", Json::array()}};
  for (const diagnose::MemoryPart& part : m.parts) {
    Json one = {{"name", part.name}, {"bytes", part.bytes}};
    if (!part.of.empty()) one["of"] = ObjectOf(part.of);
    if (!part.types.empty()) one["types"] = ObjectOf(part.types);
    memory["parts"].push_back(std::move(one));
  }
  return memory;
}

Json MemoryWhatIfOf(const diagnose::MemoryWhatIf& w) {
  if (!w.missing.empty()) return {{"change", w.change}, {"missing", w.missing}};
  Json answer = {{"change", w.change}, {"batch", w.batch}, {"seen", w.seen}};
  Put(answer, "now", w.now);
  Put(answer, "expected", w.expected);
  Put(answer, "low", w.low);
  Put(answer, "high", w.high);
  Put(answer, "total", w.total);
  answer["verdict"] = FitText(w);
  answer["sizes"] = w.sizes;
  Put(answer, "assumes", w.assumes);
  return answer;
}

// The value of a fact is a JSON text; if it is not valid JSON, it is kept as a string.
Json Facts(const std::map<std::string, std::string>& facts) {
  Json object = Json::object();
  for (const auto& [key, text] : facts) {
    Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    object[key] = value.is_discarded() ? Json(text) : std::move(value);
  }
  return object;
}

Json LoggedOf(const diagnose::LoggedMetric& metric) {
  Json one = {
      {"name", metric.name}, {"rank", metric.rank}, {"loggers", metric.loggers}, {"values", metric.values}};
  if (!metric.points.empty())
    one.update({{"first", metric.first}, {"last", metric.last}, {"last_step", metric.points.back().step}});
  for (const auto& [name, count] :
       {std::pair("thinned", metric.thinned), std::pair("not_finite", metric.not_finite),
        std::pair("on_device", metric.on_device)}) {
    if (count > 0) one[name] = count;
  }
  return one;
}

Json ChangesJson(const std::vector<diagnose::Change>& changes) {
  Json array = Json::array();
  for (const diagnose::Change& change : changes) {
    Json one = {{"what", change.what}};
    if (!change.unit.empty()) one["unit"] = change.unit;
    if (change.before)
      one["before"] = *change.before;
    else if (!change.before_text.empty())
      one["before"] = change.before_text;
    if (change.after)
      one["after"] = *change.after;
    else if (!change.after_text.empty())
      one["after"] = change.after_text;
    if (change.move) {
      one["change_ci95"] = {change.move->low, change.move->high};
      one["significant"] = change.move->IsMoreThanNoise();
    }
    array.push_back(std::move(one));
  }
  return array;
}

}  // namespace

std::string_view Name(diagnose::Severity severity) {
  switch (severity) {
    case diagnose::Severity::kInfo:
      return "info";
    case diagnose::Severity::kWarning:
      return "warning";
    case diagnose::Severity::kCritical:
      return "critical";
  }
  return "info";
}

Json ToJson(const fitness::Fitness& fitness) {
  Json conditions = Json::array();
  for (const fitness::Condition& condition : fitness.conditions) {
    Json one = {{"id", condition.id}, {"says", condition.says}};
    Put(one, "number", condition.number);
    one["unit"] = condition.unit;
    one["forbids"] = Json::array();
    for (const fitness::Conclusion conclusion : condition.forbids)
      one["forbids"].push_back(fitness::Name(conclusion));
    Put(one, "mend", condition.mend);
    conditions.push_back(std::move(one));
  }
  return conditions;
}

Json ToJson(const Diagnosis& d) {
  Json report = {{"schema", kReportSchema}};
  Put(report, "run_id", d.run_id);
  report["source"] = d.source;
  Put(report, "stage", d.stage);
  Put(report, "exit_status", d.exit_status);
  if (d.out_of_memory) report["out_of_memory"] = true;
  report["judgeable"] = d.fitness.CanBeJudged();
  report["fitness"] = ToJson(d.fitness);
  report["machine"] = ObjectOf(d.machine);
  report["window"] = Window(d);
  if (d.steps > 0) {
    if (!d.sampled && !d.fitness.Forbids(fitness::Conclusion::kRates)) report["throughput"] = Throughput(d);
    report["step_time"] = StepTime(d);
    if (!d.engine.empty()) report["serving"] = Serving(d);
  }
  for (const char* list : {"findings", "would_not_help", "not_judged", "ranks"}) report[list] = Json::array();
  for (const auto& finding : d.findings) report["findings"].push_back(FindingOf(finding));
  for (const auto& [what, why] : d.would_not_help)
    report["would_not_help"].push_back({{"what", what}, {"why", why}});
  for (const auto& [id, why, needs] : d.not_judged) {
    report["not_judged"].push_back({{"id", id}, {"why", why}, {"needs", needs}});
  }
  for (const auto& rank : d.ranks) report["ranks"].push_back(Rank(rank));
  for (const auto& node : d.nodes) report["nodes"].push_back(NodeOf(node));
  if (d.replay) report["replay"] = ReplayOf(*d.replay);
  if (d.device_window) report["device_window"] = WindowReportOf(*d.device_window);
  for (const auto& metric : d.logged) report["logged"].push_back(LoggedOf(metric));
  if (d.memory) report["memory"] = MemoryOf(*d.memory);
  if (d.memory_what_if) report["memory_what_if"] = MemoryWhatIfOf(*d.memory_what_if);
  report["resources"] = Json::object();
  for (const auto& [series, summary] : d.resources) report["resources"][series] = Resource(summary);
  report["facts"] = Facts(d.facts);
  report["messages"] = d.messages;
  if (!d.notes.empty()) report["notes"] = d.notes;
  return report;
}

nlohmann::ordered_json ToJson(const Explained& explained) {
  nlohmann::ordered_json object = ToJson(explained.verdict());
  if (explained.stages.size() < 2) return object;
  for (const Diagnosis& stage : explained.stages) object["stages"].push_back(ToJson(stage));
  return object;
}

nlohmann::ordered_json ToJson(const Diagnosis& before, const Diagnosis& after,
                              const diagnose::Comparison& comparison) {
  Json json = {{"schema", "fullbore.comparison/1"},
               {"before", before.run_id},
               {"after", after.run_id},
               {"rate",
                {{"unit", comparison.rate_unit},
                 {"before", comparison.rate_before},
                 {"after", comparison.rate_after}}},
               {"speedup", comparison.speedup}};
  if (comparison.interval_known) {
    json["speedup_ci95"] = {comparison.speedup_low, comparison.speedup_high};
    json["significant"] = comparison.significant;
  }
  if (comparison.starts > 1)
    json["starts"] = {{"before", comparison.starts}, {"after", comparison.new_starts}};
  if (const auto& pace = comparison.undisturbed)
    json["undisturbed"] = {{"speedup", pace->value}, {"ci95", {pace->low, pace->high}}};
  if (comparison.predicted) {
    json["predicted"] = {{"expected", comparison.predicted->expected},
                         {"low", comparison.predicted->low},
                         {"high", comparison.predicted->high}};
    json["prediction"] = diagnose::Name(comparison.prediction);
    json["advised"] = comparison.advised;
    json["other_changes"] = comparison.other_changes;
  }
  json["shares"] = ChangesJson(comparison.shares);
  json["facts"] = ChangesJson(comparison.facts);
  if (!comparison.logged.empty()) json["logged"] = ChangesJson(comparison.logged);
  json["resources"] = ChangesJson(comparison.resources);
  json["findings_gone"] = comparison.findings_gone;
  json["findings_new"] = comparison.findings_new;
  return json;
}

std::string ToJsonText(const Diagnosis& diagnosis) {
  return PrintableJson(
             ToJson(diagnosis).dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)) +
         "\n";
}

}  // namespace fullbore::report
