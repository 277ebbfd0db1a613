#include "measure/probe/nvml/slow_readings.h"

#include <algorithm>

#include "measure/probe/nvml/device_users.h"

namespace fullbore::probe::nvml {

namespace {

constexpr double kPercent = 0.01;
constexpr double kMhz = 1e6;
constexpr double kMilli = 1e-3;
constexpr double kMiB = 1 << 20;
constexpr double kKiB = 1 << 10;
constexpr uint32_t kMaxProcesses = 256;

const std::vector<GpmSeries>& SlowGpmSeries() {
  static const std::vector<GpmSeries> series = {
      {kGpmGraphicsUtil, Metric::kGpuGraphicsActive, kPercent},
      {kGpmIntegerUtil, Metric::kGpuIntegerActive, kPercent},
      {kGpmDfmaTensorUtil, Metric::kGpuTensorDoubleActive, kPercent},
      {kGpmHmmaTensorUtil, Metric::kGpuTensorHalfActive, kPercent},
      {kGpmImmaTensorUtil, Metric::kGpuTensorIntegerActive, kPercent},
      {kGpmFp64Util, Metric::kGpuFp64Active, kPercent},
      {kGpmFp32Util, Metric::kGpuFp32Active, kPercent},
      {kGpmFp16Util, Metric::kGpuFp16Active, kPercent},
      {kGpmPcieTxPerSec, Metric::kGpuPcieSend, kMiB},
      {kGpmPcieRxPerSec, Metric::kGpuPcieReceive, kMiB},
      {kGpmNvlinkRxPerSec, Metric::kGpuNvlinkReceive, kMiB},
      {kGpmNvlinkTxPerSec, Metric::kGpuNvlinkSend, kMiB}};
  return series;
}

std::optional<double> Number(const FieldValue& field) {
  switch (field.value_type) {
    case ValueType::kDouble:
      return field.value.d;
    case ValueType::kUnsignedInt:
      return field.value.ui;
    case ValueType::kUnsignedLong:
    case ValueType::kUnsignedLongLong:
      return static_cast<double>(field.value.ull);
    case ValueType::kSignedLongLong:
      return static_cast<double>(field.value.sll);
    case ValueType::kSignedInt:
      return field.value.si;
  }
  return std::nullopt;
}

}  // namespace

SlowProbe::Readings::Readings(Session& session, const Gpu& gpu, const std::function<bool(int64_t)>& is_ours)
    : session_(session),
      is_ours_(is_ours),
      gpm_(session, gpu, SlowGpmSeries()),
      slowdown_(session.slowdown_fields()) {
  const auto key = [&gpu](Metric metric) { return KeyOf(metric, gpu.labels); };
  const auto key_of_owner = [&gpu](Metric metric, const char* owner) {
    record::Labels labels = gpu.labels;
    labels["owner"] = owner;
    return KeyOf(metric, std::move(labels));
  };
  memory_used_.key = key(Metric::kGpuMemoryUsed);
  memory_total_.key = key(Metric::kGpuMemoryTotal);
  power_.key = key(Metric::kGpuPower);
  power_limit_.key = key(Metric::kGpuPowerLimit);
  energy_.key = key(Metric::kGpuEnergy);
  sm_clock_.key = key(Metric::kGpuSmClock);
  sm_clock_max_.key = key(Metric::kGpuSmClockMax);
  memory_clock_.key = key(Metric::kGpuMemoryClock);
  memory_clock_max_.key = key(Metric::kGpuMemoryClockMax);
  temperature_.key = key(Metric::kGpuTemperature);
  throttle_reasons_.key = key(Metric::kGpuThrottleReasons);
  ecc_corrected_.key = key(Metric::kGpuEccCorrected);
  ecc_uncorrected_.key = key(Metric::kGpuEccUncorrected);
  remapped_rows_.key = key(Metric::kGpuRemappedRows);
  process_count_.key = key(Metric::kGpuProcessCount);
  memory_of_command_ = key_of_owner(Metric::kGpuProcessMemory, "command");
  memory_of_others_ = key_of_owner(Metric::kGpuProcessMemory, "other");
  sm_of_command_ = key_of_owner(Metric::kGpuProcessSm, "command");
  sm_of_others_ = key_of_owner(Metric::kGpuProcessSm, "other");
  throttle_power_ = key(Metric::kGpuThrottlePower);
  throttle_thermal_ = key(Metric::kGpuThrottleThermal);
  pcie_receive_ = key(Metric::kGpuPcieReceive);
  pcie_send_ = key(Metric::kGpuPcieSend);
  nvlink_receive_ = key(Metric::kGpuNvlinkReceive);
  nvlink_send_ = key(Metric::kGpuNvlinkSend);

  fields_.push_back({kFieldPowerInstantMw, 0, {}, {}});
  for (const uint32_t id : {kFieldThrottlePowerNs, kFieldThrottleThermalNs})
    fields_.push_back({id, 0, {}, {}});
  if (slowdown_) {
    for (const uint32_t id :
         {slowdown_->software_thermal, slowdown_->hardware_thermal, slowdown_->power_brake})
      fields_.push_back({id, 0, {}, {}});
  }
  if (gpm_.supported()) return;
  for (const uint32_t id : {kFieldPcieSentBytes, kFieldPcieReceivedBytes}) fields_.push_back({id, 0, {}, {}});
  for (const uint32_t id : {kFieldNvlinkSentKib, kFieldNvlinkReceivedKib})
    fields_.push_back({id, kAllLinks, {}, {}});
}

void SlowProbe::Readings::Sample(int64_t t_ns, Gpu& gpu, Sink& sink) {
  ReadMemory(t_ns, gpu, sink);
  if (!gpu.away) gpm_.Sample(t_ns, gpu, sink);
  // An instance of a partitioned GPU has no clocks, power or bus of its own: its parent's are recorded.
  if (gpu.parent != nullptr || gpu.away) return;
  ReadClocks(t_ns, gpu, sink);
  ReadHealth(t_ns, gpu, sink);
  ReadEnergy(t_ns, gpu, sink);
  ReadFields(t_ns, gpu, sink);
  ReadReasons(t_ns, gpu, sink);
  ReadPower(t_ns, gpu, sink);
  ReadThrottling(t_ns, sink);
  ReadTraffic(t_ns, sink);
  ReadProcesses(t_ns, gpu, sink);
  ReadProcessUtilization(t_ns, gpu, sink);
}

template <typename T, typename Call>
void SlowProbe::Readings::ReadOne(Quantity& quantity, double factor, int64_t t_ns, Gpu& gpu, Sink& sink,
                                  Call call) {
  if (!quantity.asked.on || gpu.away) return;
  T value{};
  if (!session_.Succeeded(call(gpu.device, &value), gpu, quantity.asked, sink)) return;
  sink.Read(quantity.key, t_ns, static_cast<double>(value) * factor);
}

void SlowProbe::Readings::ReadMemory(int64_t t_ns, Gpu& gpu, Sink& sink) {
  if (!memory_used_.asked.on) return;
  Library& library = session_.library();
  uint64_t used = 0, total = 0;
  // The newer call separates the memory reserved by the driver from that used by programs.
  if (MemoryV2 now{kMemoryV2Version, 0, 0, 0, 0};
      memory_v2_.on && session_.Succeeded(library.memory_v2(gpu.device, &now), gpu, memory_v2_, sink)) {
    used = now.used;
    total = now.total;
  } else if (Memory older{}; !gpu.away && session_.Succeeded(library.memory(gpu.device, &older), gpu,
                                                             memory_used_.asked, sink)) {
    used = older.used;
    total = older.total;
  }
  if (total == 0) return;  // unified memory is the host's
  sink.Read(memory_used_.key, t_ns, static_cast<double>(used));
  sink.Read(memory_total_.key, t_ns, static_cast<double>(total));
}

void SlowProbe::Readings::ReadClocks(int64_t t_ns, Gpu& gpu, Sink& sink) {
  Library& library = session_.library();
  const auto clock = [&](auto& function, uint32_t which) {
    return [&function, which](Device device, uint32_t* mhz) { return function(device, which, mhz); };
  };
  ReadOne<uint32_t>(sm_clock_, kMhz, t_ns, gpu, sink, clock(library.clock_mhz, kClockSm));
  ReadOne<uint32_t>(sm_clock_max_, kMhz, t_ns, gpu, sink, clock(library.max_clock_mhz, kClockSm));
  ReadOne<uint32_t>(memory_clock_, kMhz, t_ns, gpu, sink, clock(library.clock_mhz, kClockMemory));
  ReadOne<uint32_t>(memory_clock_max_, kMhz, t_ns, gpu, sink, clock(library.max_clock_mhz, kClockMemory));
}

void SlowProbe::Readings::ReadReasons(int64_t t_ns, Gpu& gpu, Sink& sink) {
  reasons_.reset();
  ReadOne<unsigned long long>(throttle_reasons_, 1, t_ns, gpu, sink,
                              [&](Device device, unsigned long long* mask) {
                                const Return code = session_.library().throttle_reasons(device, mask);
                                if (code == kSuccess) reasons_ = *mask;
                                return code;
                              });
}

void SlowProbe::Readings::ReadHealth(int64_t t_ns, Gpu& gpu, Sink& sink) {
  Library& library = session_.library();
  ReadOne<uint32_t>(temperature_, 1, t_ns, gpu, sink, [&](Device device, uint32_t* celsius) {
    return library.temperature(device, kTemperatureGpu, celsius);
  });
  const auto ecc = [&library](uint32_t kind) {
    return [&library, kind](Device device, unsigned long long* count) {
      return library.ecc_errors(device, kind, kEccVolatile, count);
    };
  };
  ReadOne<unsigned long long>(ecc_corrected_, 1, t_ns, gpu, sink, ecc(kEccCorrected));
  ReadOne<unsigned long long>(ecc_uncorrected_, 1, t_ns, gpu, sink, ecc(kEccUncorrected));
  ReadOne<uint32_t>(remapped_rows_, 1, t_ns, gpu, sink, [&](Device device, uint32_t* rows) {
    uint32_t corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    const Return code = library.remapped_rows(device, &corrected, &uncorrected, &pending, &failed);
    *rows = corrected + uncorrected;
    return code;
  });
}

// Recorded from 0 at the start of the recording: the counter itself started when the driver was loaded.
void SlowProbe::Readings::ReadEnergy(int64_t t_ns, Gpu& gpu, Sink& sink) {
  unsigned long long mj = 0;
  if (!energy_.asked.on || gpu.away) return;
  if (!session_.Succeeded(session_.library().energy_mj(gpu.device, &mj), gpu, energy_.asked, sink)) return;
  if (!first_energy_mj_ || mj < *first_energy_mj_) first_energy_mj_ = mj;
  sink.Read(energy_.key, t_ns, static_cast<double>(mj - *first_energy_mj_) * kMilli);
}

void SlowProbe::Readings::ReadFields(int64_t, Gpu& gpu, Sink& sink) {
  for (Field& field : fields_) field.value.reset();
  if (!fields_asked_.on || gpu.away) return;
  values_.clear();
  for (const Field& field : fields_) {
    if (field.asked.on) values_.push_back({field.id, field.scope, 0, 0, ValueType::kDouble, kSuccess, {0}});
  }
  if (values_.empty()) return;
  const Return code =
      session_.library().field_values(gpu.device, static_cast<int>(values_.size()), values_.data());
  if (!session_.Succeeded(code, gpu, fields_asked_, sink)) return;
  for (const FieldValue& value : values_) {
    Field* const asked = FieldOf(value.field_id);
    if (!asked) continue;  // the driver answers what was not asked
    Field& field = *asked;
    // A 32-bit byte counter wraps several times a second and is useless.
    const bool pcie = value.field_id == kFieldPcieSentBytes || value.field_id == kFieldPcieReceivedBytes;
    if (pcie && value.result == kSuccess && value.value_type == ValueType::kUnsignedInt)
      field.asked.on = false;
    else if (session_.Succeeded(value.result, gpu, field.asked, sink))
      field.value = Number(value);
  }
}

SlowProbe::Readings::Field* SlowProbe::Readings::FieldOf(uint32_t id) {
  const auto found = std::ranges::find(fields_, id, &Field::id);
  return found == fields_.end() ? nullptr : &*found;
}

std::optional<double> SlowProbe::Readings::ValueOf(uint32_t id) {
  const Field* field = FieldOf(id);
  return field ? field->value : std::nullopt;
}

void SlowProbe::Readings::ReadPower(int64_t t_ns, Gpu& gpu, Sink& sink) {
  Library& library = session_.library();
  ReadOne<uint32_t>(power_limit_, kMilli, t_ns, gpu, sink, library.power_limit_mw);
  if (const auto milliwatts = ValueOf(kFieldPowerInstantMw)) {
    sink.Read(power_.key, t_ns, *milliwatts * kMilli);
  } else {
    ReadOne<uint32_t>(power_, kMilli, t_ns, gpu, sink, library.power_mw);
  }
}

std::optional<double> SlowProbe::Readings::RatioOf(uint32_t field, Counter& counter, int64_t t_ns) {
  const auto ns = ValueOf(field);
  if (!ns || *ns < 0) return std::nullopt;
  const auto rate = counter.RatePerSecond(t_ns, static_cast<uint64_t>(*ns));
  if (!rate) return std::nullopt;
  return std::min(*rate * 1e-9, 1.0);
}

// Two reasons may hold at once: the larger fraction of the time is certain, their sum is not. If
// this driver has no counter for a reason, its state at this moment stands for the whole second:
// over a run the mean is right.
void SlowProbe::Readings::ReadThrottling(int64_t t_ns, Sink& sink) {
  const auto power_cap = RatioOf(kFieldThrottlePowerNs, power_cap_ns_, t_ns);
  const auto policy = RatioOf(kFieldThrottleThermalNs, thermal_ns_, t_ns);
  std::optional<double> brake, soft, hard;
  if (slowdown_) {
    brake = RatioOf(slowdown_->power_brake, power_brake_ns_, t_ns);
    soft = RatioOf(slowdown_->software_thermal, soft_thermal_ns_, t_ns);
    hard = RatioOf(slowdown_->hardware_thermal, hard_thermal_ns_, t_ns);
  }
  const auto holds = [&](uint64_t reasons) -> std::optional<double> {
    if (!reasons_) return std::nullopt;
    return (*reasons_ & reasons) != 0 ? 1.0 : 0.0;
  };
  if (!slowdown_) brake = holds(kReasonPowerBrake);
  if (!soft && !hard) soft = policy;
  if (!soft && !hard && !slowdown_) soft = holds(kReasonSoftThermal | kReasonHardThermal);
  const auto emit = [&](const record::SeriesKey& key, std::optional<double> a, std::optional<double> b) {
    if (a || b) sink.Read(key, t_ns, std::max(a.value_or(0), b.value_or(0)));
  };
  emit(throttle_power_, power_cap, brake);
  emit(throttle_thermal_, soft, hard);
}

void SlowProbe::Readings::ReadTraffic(int64_t t_ns, Sink& sink) {
  if (gpm_.supported()) return;
  const auto emit = [&](uint32_t id, Counter& counter, const record::SeriesKey& key, double factor) {
    const auto value = ValueOf(id);
    if (!value || *value < 0) return;
    if (const auto rate = counter.RatePerSecond(t_ns, static_cast<uint64_t>(*value))) {
      sink.Read(key, t_ns, *rate * factor);
    }
  };
  emit(kFieldPcieReceivedBytes, pcie_received_, pcie_receive_, 1);
  emit(kFieldPcieSentBytes, pcie_sent_, pcie_send_, 1);
  emit(kFieldNvlinkReceivedKib, nvlink_received_, nvlink_receive_, kKiB);
  emit(kFieldNvlinkSentKib, nvlink_sent_, nvlink_send_, kKiB);
}

// Inside a container NVML shows the host's pids, which may belong to other processes here. So the memory is
// split by owner only once a process of the command was found among them.
void SlowProbe::Readings::ReadProcesses(int64_t t_ns, Gpu& gpu, Sink& sink) {
  if (!process_count_.asked.on || gpu.away) return;
  const Return code = ListProcesses(session_.library().compute_processes, gpu.device, processes_);
  if (!session_.Succeeded(code, gpu, process_count_.asked, sink)) return;
  sink.Read(process_count_.key, t_ns, static_cast<double>(processes_.size()));
  double ours = 0, others = 0;
  for (const ProcessInfo& process : processes_) {
    if (process.used_memory == kMemoryNotAvailable) return;
    const bool is_ours = is_ours_(process.pid);
    ours_seen_ |= is_ours;
    (is_ours ? ours : others) += static_cast<double>(process.used_memory);
  }
  if (!ours_seen_) return;
  sink.Read(memory_of_command_, t_ns, ours);
  sink.Read(memory_of_others_, t_ns, others);
}

void SlowProbe::Readings::ReadProcessUtilization(int64_t t_ns, Gpu& gpu, Sink& sink) {
  if (!process_sm_.asked.on || !ours_seen_ || gpu.away) return;
  utilizations_.resize(kMaxProcesses);
  uint32_t count = kMaxProcesses;
  const Return code =
      session_.library().process_utilization(gpu.device, utilizations_.data(), &count, last_seen_us_);
  if (!session_.Succeeded(code, gpu, process_sm_.asked, sink)) return;  // 6: nobody has used it since
  utilizations_.resize(std::min(count, kMaxProcesses));
  const unsigned long long seen_before_us = last_seen_us_;
  double ours = 0, others = 0;
  for (const ProcessUtilization& process : utilizations_) {
    // The library also returns processes that are gone, and absurd values.
    if (process.timestamp_us <= seen_before_us || process.sm_percent > 100) continue;
    last_seen_us_ = std::max<unsigned long long>(last_seen_us_, process.timestamp_us);
    (is_ours_(process.pid) ? ours : others) += process.sm_percent * kPercent;
  }
  if (last_seen_us_ == seen_before_us) return;
  sink.Read(sm_of_command_, t_ns, std::min(ours, 1.0));
  sink.Read(sm_of_others_, t_ns, std::min(others, 1.0));
}

}  // namespace fullbore::probe::nvml
