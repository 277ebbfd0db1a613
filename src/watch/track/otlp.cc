#include "watch/track/otlp.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <utility>

#include "base/secrets.h"
#include "base/text.h"

namespace fullbore::watch {

namespace {

using Json = nlohmann::ordered_json;

constexpr char kPath[] = "/v1/metrics";

std::string MetricsUrl(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url.ends_with(kPath) ? url : url + kPath;
}

Json Attribute(const std::string& key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}

// Our units in those of UCUM, which the protocol asks for.
std::string Unit(const std::string& unit) {
  static const std::map<std::string, std::string> kUnits = {
      {"ratio", "1"},           {"bytes", "By"},     {"bytes/s", "By/s"},     {"count", "{count}"},
      {"count/s", "{count}/s"}, {"cores", "{core}"}, {"threads", "{thread}"}, {"celsius", "Cel"}};
  const auto known = kUnits.find(unit);
  return known == kUnits.end() ? unit : known->second;
}

Json Point(int64_t wall_ns, double value, const record::Labels& labels) {
  Json attributes = Json::array();
  for (const auto& [label, text] : labels) attributes.push_back(Attribute(label, text));
  return {{"attributes", attributes}, {"timeUnixNano", std::to_string(wall_ns)}, {"asDouble", value}};
}

// Metrics by their names, each with all its points.
class Gauges {
 public:
  void Add(const std::string& name, const std::string& unit, Json point) {
    Json& metric = metrics_[name];
    metric["name"] = "fullbore." + name;
    metric["unit"] = Unit(unit);
    metric["gauge"]["dataPoints"].push_back(std::move(point));
  }
  Json All() {
    Json all = Json::array();
    for (auto& [name, metric] : metrics_) all.push_back(std::move(metric));
    return all;
  }

 private:
  std::map<std::string, Json> metrics_;
};

std::string Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char* const end = text.data() + std::min(i + 3, text.size());
    if (text[i] == '%' && std::from_chars(text.data() + i + 1, end, byte, 16).ptr == text.data() + i + 3) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

}  // namespace

std::vector<std::string> HeadersIn(const std::string& text) {
  std::vector<std::string> headers;
  for (const std::string_view each : Split(text, ',')) {
    const size_t equals = each.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string header =
        fmt::format("{}: {}", Trim(each.substr(0, equals)), Decoded(Trim(each.substr(equals + 1))));
    if (header.find_first_of("\r\n") == std::string::npos) headers.push_back(header);
  }
  return headers;
}

Otlp::Otlp(std::string url)
    : url_(MetricsUrl(std::move(url))), headers_(HeadersIn(Variable("OTEL_EXPORTER_OTLP_HEADERS"))) {}

std::string Otlp::name() const { return "the collector at " + MaskUrl(url_); }

Attempt Otlp::Begin(const TrackedRun& run) {
  Json attributes = Json::array({Attribute("service.name", "fullbore"), Attribute("fullbore.run", run.id)});
  if (!run.host.empty()) attributes.push_back(Attribute("host.name", run.host));
  for (const auto& [key, value] : run.tags) attributes.push_back(Attribute("fullbore.tag." + key, value));
  resource_ = {{"attributes", attributes}};
  return {Attempt::End::kDelivered, ""};
}

Attempt Otlp::Send(const std::vector<Sample>& samples) {
  Gauges gauges;
  for (const Sample& sample : samples) {
    gauges.Add("steps", "count", Point(sample.wall_ns, static_cast<double>(sample.step), {}));
    for (const Value& value : sample.values)
      gauges.Add(value.key.name, value.key.unit, Point(sample.wall_ns, value.value, value.key.labels));
  }
  return SendMetrics(gauges.All());
}

Attempt Otlp::End(const TrackedRun& run, const Conclusion& conclusion) {
  const Judgement& judgement = conclusion.judgement;
  if (judgement.finding.empty()) return {Attempt::End::kDelivered, ""};
  Gauges gauges;
  gauges.Add(
      "finding.speedup", "ratio",
      Point(run.wall_end_ns, judgement.speedup,
            {{"finding", judgement.finding}, {"cause", judgement.cause}, {"severity", judgement.severity}}));
  return SendMetrics(gauges.All());
}

Attempt Otlp::SendMetrics(Json metrics) {
  const Json scope = {{"scope", {{"name", "fullbore"}}}, {"metrics", std::move(metrics)}};
  const Json request = {
      {"resourceMetrics", Json::array({{{"resource", resource_}, {"scopeMetrics", Json::array({scope})}}})}};
  Attempt attempt = Post(url_, request.dump(-1, ' ', false, Json::error_handler_t::replace), stop_, headers_);
  if (attempt.end != Attempt::End::kDelivered) return attempt;
  const auto answer = nlohmann::json::parse(attempt.answer, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("partialSuccess")) return attempt;
  const auto& partly = answer["partialSuccess"];
  if (partly.is_object() && partly.contains("rejectedDataPoints") && partly["rejectedDataPoints"] != "0" &&
      partly["rejectedDataPoints"] != 0)
    attempt.problem = "it refused some of the values";
  return attempt;
}

}  // namespace fullbore::watch
