#include "record/step_codec.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "record/columns.h"
#include "record/json_text.h"
#include "record/limits.h"

namespace fullbore::record {

namespace {

using nlohmann::json;

// One table for both directions: how field i of a T is read and written as an integer.
template <typename T>
struct Field {
  std::function<int64_t(const T&)> get;
  std::function<void(T&, int64_t)> set;
};

template <typename T, typename Member>
Field<T> FieldOf(Member T::*member) {
  return {[member](const T& t) { return static_cast<int64_t>(t.*member); },
          [member](T& t, int64_t value) { t.*member = static_cast<Member>(value); }};
}

template <typename T, size_t N>
void AddArray(std::vector<Field<T>>& fields, std::array<int64_t, N> T::*member) {
  for (size_t i = 0; i < N; ++i) {
    fields.push_back({[member, i](const T& t) { return (t.*member)[i]; },
                      [member, i](T& t, int64_t value) { (t.*member)[i] = value; }});
  }
}

// The order of the fields is the file format: new ones go at the end.
const std::vector<Field<Step>>& StepFields() {
  static const auto fields = [] {
    std::vector<Field<Step>> f = {FieldOf(&Step::index),        FieldOf(&Step::end_ns),
                                  FieldOf(&Step::wall_ns),      FieldOf(&Step::samples),
                                  FieldOf(&Step::batches),      FieldOf(&Step::device_ns),
                                  FieldOf(&Step::ready_batches)};
    AddArray(f, &Step::share_ns);
    AddArray(f, &Step::host_other_ns);
    f.push_back(FieldOf(&Step::elements));
    return f;
  }();
  return fields;
}

const std::vector<Field<StepWindow>>& WindowFields() {
  static const auto fields = [] {
    std::vector<Field<StepWindow>> f = {FieldOf(&StepWindow::begin_ns),   FieldOf(&StepWindow::end_ns),
                                        FieldOf(&StepWindow::first_step), FieldOf(&StepWindow::steps),
                                        FieldOf(&StepWindow::samples),    FieldOf(&StepWindow::min_wall_ns),
                                        FieldOf(&StepWindow::max_wall_ns)};
    AddArray(f, &StepWindow::share_ns);
    AddArray(f, &StepWindow::host_other_ns);
    return f;
  }();
  return fields;
}

template <size_t N>
bool ArePossible(const std::array<int64_t, N>& parts_ns) {
  return std::all_of(parts_ns.begin(), parts_ns.end(),
                     [](int64_t ns) { return ns >= 0 && ns <= kMaxNs / static_cast<int64_t>(2 * N); });
}

bool IsMoment(int64_t ns) { return ns >= -kMaxNs && ns <= kMaxNs; }
bool IsDuration(int64_t ns) { return ns >= 0 && ns <= kMaxNs / 2; }
bool IsCount(int64_t count) { return count >= 0 && count <= kMaxCount; }

bool IsPossible(const Step& step) {
  return IsCount(step.index) && IsMoment(step.end_ns) && IsDuration(step.wall_ns) && IsCount(step.samples) &&
         step.batches >= 0 && step.batches <= kMaxBatchesOfStep && ArePossible(step.share_ns) &&
         ArePossible(step.host_other_ns) && step.device_ns >= -1 && step.device_ns <= kMaxNs &&
         step.elements >= 0;
}

bool IsPossible(const StepWindow& window) {
  return IsMoment(window.begin_ns) && IsMoment(window.end_ns) && IsCount(window.first_step) &&
         IsCount(window.steps) && IsCount(window.samples) && IsDuration(window.min_wall_ns) &&
         IsDuration(window.max_wall_ns) && ArePossible(window.share_ns) && ArePossible(window.host_other_ns);
}

template <typename T>
std::string Encode(const std::vector<T>& rows, const std::vector<Field<T>>& fields) {
  std::vector<Column> columns(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    for (const T& row : rows) columns[i].values.push_back(fields[i].get(row));
  }
  return EncodeColumns(columns);
}

template <typename T>
Result<std::vector<T>> Decode(std::string_view bytes, const std::vector<Field<T>>& fields) {
  const auto columns = DecodeColumns(bytes);
  if (!columns) return columns.error();
  std::vector<T> rows(columns->empty() ? 0 : columns->front().values.size());
  for (size_t i = 0; i < fields.size() && i < columns->size(); ++i) {
    const auto& values = (*columns)[i].values;
    if (values.size() != rows.size()) return Error{ErrorCode::kCorrupt, "a block of steps is damaged", ""};
    for (size_t row = 0; row < rows.size(); ++row) fields[i].set(rows[row], values[row]);
  }
  for (const T& row : rows) {
    if (!IsPossible(row)) return Error{ErrorCode::kCorrupt, "a block of steps holds impossible values", ""};
  }
  return rows;
}

// Counts and times are whole and not negative; anything else was not recorded.
std::optional<int64_t> Whole(const json& value, int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most)) return std::nullopt;
  const auto whole = value.get<int64_t>();
  return whole >= 0 && whole <= most ? std::optional(whole) : std::nullopt;
}

void Take(const json& object, const char* key, std::string& into) {
  const auto at = object.find(key);
  if (at != object.end() && at->is_string()) into = at->get<std::string>();
}

void Take(const json& object, const char* key, bool& into) {
  const auto at = object.find(key);
  if (at != object.end() && at->is_boolean()) into = at->get<bool>();
}

void Take(const json& object, const char* key, std::optional<int64_t>& into, int64_t most = kMaxNs) {
  const auto at = object.find(key);
  if (at == object.end()) return;
  if (const auto whole = Whole(*at, most)) into = whole;
}

template <typename T>
requires std::is_integral_v<T>
void Take(const json& object, const char* key, T& into) {
  std::optional<int64_t> whole;
  Take(object, key, whole, std::min<int64_t>(kMaxNs, std::numeric_limits<T>::max()));
  if (whole) into = static_cast<T>(*whole);
}

template <typename T>
void Put(json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

// Text from a traced process may hold any bytes; JSON holds UTF-8.
std::string Dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

using Total = std::pair<const char*, std::optional<int64_t> RankInfo::*>;
constexpr Total kTotals[] = {{"span_ns", &RankInfo::span_ns},
                             {"busy_ns", &RankInfo::busy_ns},
                             {"compute_ns", &RankInfo::compute_ns},
                             {"comm_ns", &RankInfo::comm_ns},
                             {"comm_exposed_ns", &RankInfo::comm_exposed_ns},
                             {"comm_overlapped_ns", &RankInfo::comm_overlapped_ns},
                             {"copy_ns", &RankInfo::copy_ns},
                             {"copy_exposed_ns", &RankInfo::copy_exposed_ns},
                             {"kernels", &RankInfo::kernels}};

using LoaderSum = std::pair<const char*, int64_t Loader::*>;
constexpr LoaderSum kLoaderSums[] = {{"num_workers", &Loader::num_workers},
                                     {"batches", &Loader::batches},
                                     {"samples", &Loader::samples},
                                     {"fetch_ns", &Loader::fetch_ns},
                                     {"collate_ns", &Loader::collate_ns},
                                     {"cpu_ns", &Loader::cpu_ns},
                                     {"run_delay_ns", &Loader::run_delay_ns},
                                     {"worker_span_ns", &Loader::worker_span_ns},
                                     {"worker_idle_ns", &Loader::worker_idle_ns},
                                     {"restarts", &Loader::restarts},
                                     {"restart_wait_ns", &Loader::restart_wait_ns},
                                     {"draws", &Loader::draws},
                                     {"draw_ns", &Loader::draw_ns}};

json ArrayOf(const std::vector<HotLine>& lines) {
  json array = json::array();
  for (const HotLine& line : lines) {
    json object = {{"share", Name(line.share)},       {"file", line.file},      {"line", line.line},
                   {"function", line.function},       {"text", line.text},      {"samples", line.samples},
                   {"activity", Name(line.activity)}, {"part", Name(line.part)}};
    if (line.in_iterator) object["in_iterator"] = true;
    if (!line.library.empty()) object["library"] = line.library;
    if (line.slow_samples > 0) object["slow_samples"] = line.slow_samples;
    array.push_back(std::move(object));
  }
  return array;
}

std::vector<HotLine> LinesOf(const json& array) {
  std::vector<HotLine> lines;
  for (const json& object : array) {
    if (!object.is_object()) continue;
    HotLine line;
    std::string share, part, activity;
    Take(object, "share", share);
    line.share = ShareNamed(share).value_or(Share::kHostOther);
    Take(object, "part", part);
    line.part = HostOtherNamed(part).value_or(HostOther::kUnnamed);
    Take(object, "activity", activity);
    line.activity = ActivityNamed(activity).value_or(Activity::kUnknown);
    Take(object, "in_iterator", line.in_iterator);
    Take(object, "library", line.library);
    Take(object, "file", line.file);
    Take(object, "line", line.line);
    Take(object, "function", line.function);
    Take(object, "text", line.text);
    Take(object, "samples", line.samples);
    Take(object, "slow_samples", line.slow_samples);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::string EncodeSteps(const std::vector<Step>& steps) { return Encode(steps, StepFields()); }
Result<std::vector<Step>> DecodeSteps(std::string_view bytes) { return Decode(bytes, StepFields()); }
std::string EncodeWindows(const std::vector<StepWindow>& windows) { return Encode(windows, WindowFields()); }
Result<std::vector<StepWindow>> DecodeWindows(std::string_view bytes) {
  return Decode(bytes, WindowFields());
}

std::string TotalsToJson(const RankInfo& rank) {
  json totals = json::object();
  for (const auto& [key, member] : kTotals) Put(totals, key, rank.*member);
  if (!rank.kernel_class_ns.empty()) totals["kernel_class_ns"] = rank.kernel_class_ns;
  return Dump(totals);
}

void TotalsFromJson(const std::string& text, RankInfo& rank) {
  const json totals = ParseJson(text);
  if (!totals.is_object()) return;
  for (const auto& [key, member] : kTotals) Take(totals, key, rank.*member);
  const auto classes = totals.find("kernel_class_ns");
  if (classes == totals.end() || !classes->is_object()) return;
  for (const auto& [name, ns] : classes->items()) {
    if (const auto whole = Whole(ns, kMaxNs)) rank.kernel_class_ns[name] = *whole;
  }
}

std::string HotLinesToJson(const std::vector<HotLine>& lines) { return Dump(ArrayOf(lines)); }

std::vector<HotLine> HotLinesFromJson(const std::string& text) { return LinesOf(ParseJson(text)); }

std::string LoaderToJson(const Loader& loader) {
  json about = {{"feeds_training", loader.feeds_training},
                {"pin_memory", loader.pin_memory},
                {"persistent_workers", loader.persistent_workers},
                {"default_collate", loader.default_collate},
                {"dataset", loader.dataset},
                {"where", loader.where}};
  if (!loader.library.empty()) about["library"] = loader.library;
  if (!loader.start_method.empty()) about["start_method"] = loader.start_method;
  for (const auto& [key, member] : kLoaderSums) about[key] = loader.*member;
  Put(about, "batch_size", loader.batch_size);
  Put(about, "prefetch_factor", loader.prefetch_factor);
  Put(about, "dataset_samples", loader.dataset_samples);
  Put(about, "threads", loader.threads);
  Put(about, "map_processes", loader.map_processes);
  Put(about, "fast_sample_ns", loader.fast_sample_ns);
  if (!loader.fast_refused.empty()) about["fast_refused"] = loader.fast_refused;
  if (!loader.lines.empty()) about["lines"] = ArrayOf(loader.lines);
  return Dump(about);
}

Loader LoaderFromJson(const std::string& text) {
  const json about = ParseJson(text);
  Loader loader;
  if (!about.is_object()) return loader;
  Take(about, "feeds_training", loader.feeds_training);
  Take(about, "pin_memory", loader.pin_memory);
  Take(about, "persistent_workers", loader.persistent_workers);
  Take(about, "default_collate", loader.default_collate);
  Take(about, "dataset", loader.dataset);
  Take(about, "where", loader.where);
  Take(about, "library", loader.library);
  Take(about, "start_method", loader.start_method);
  for (const auto& [key, member] : kLoaderSums) Take(about, key, loader.*member);
  loader.num_workers = std::min(loader.num_workers, kMaxWorkers);
  Take(about, "batch_size", loader.batch_size, kMaxCount);
  Take(about, "prefetch_factor", loader.prefetch_factor, kMaxWorkers);
  Take(about, "dataset_samples", loader.dataset_samples, kMaxCount);
  Take(about, "threads", loader.threads, kMaxWorkers);
  Take(about, "map_processes", loader.map_processes, kMaxWorkers);
  Take(about, "fast_sample_ns", loader.fast_sample_ns);
  Take(about, "fast_refused", loader.fast_refused);
  if (const auto lines = about.find("lines"); lines != about.end()) loader.lines = LinesOf(*lines);
  return loader;
}

std::string MapToJson(const std::map<std::string, std::string>& map) { return Dump(json(map)); }

std::map<std::string, std::string> MapFromJson(const std::string& text) {
  std::map<std::string, std::string> map;
  const json object = ParseJson(text);
  if (!object.is_object()) return map;
  for (const auto& [key, value] : object.items()) {
    if (value.is_string()) map[key] = value.get<std::string>();
  }
  return map;
}

}  // namespace fullbore::record
