#include "measure/probe/metrics.h"

#include <algorithm>

#include "base/result.h"

namespace fullbore::probe {

namespace {

constexpr double kRatio = 0.001;
constexpr double kCoarseRatio = 0.01;  // where there are many series of the kind
constexpr double kMiB = 1 << 20;
constexpr double kRateStep = 4096;  // bytes a second: a page
constexpr Rate kFast = Rate::kFast;
constexpr Rate kSlow = Rate::kSlow;

constexpr Metric kMetrics[] = {
    {"cpu_utilization", "ratio", kRatio, kFast, ""},
    {"cpu_user", "ratio", kRatio, kFast, ""},
    {"cpu_system", "ratio", kRatio, kFast, ""},
    {"cpu_iowait", "ratio", kRatio, kFast, ""},
    {"cpu_steal", "ratio", kRatio, kFast, ""},
    {"cpu_core_utilization", "ratio", kCoarseRatio, kSlow, "cpu"},
    {"load1", "count", 0.01, kSlow, ""},
    {"memory_total", "bytes", kMiB, kSlow, ""},
    {"memory_used", "bytes", kMiB, kSlow, ""},
    {"memory_available", "bytes", kMiB, kSlow, ""},
    {"swap_used", "bytes", kMiB, kSlow, ""},
    {"swap_in", "bytes/s", kRateStep, kSlow, ""},
    {"swap_out", "bytes/s", kRateStep, kSlow, ""},
    {"major_faults", "count/s", 0.1, kSlow, ""},
    {"oom_kills", "count", 1, kSlow, ""},
    {"psi_cpu_some", "ratio", kRatio, kSlow, ""},
    {"psi_io_some", "ratio", kRatio, kSlow, ""},
    {"psi_io_full", "ratio", kRatio, kSlow, ""},
    {"psi_memory_some", "ratio", kRatio, kSlow, ""},
    {"psi_memory_full", "ratio", kRatio, kSlow, ""},
    {"disk_read", "bytes/s", kRateStep, kSlow, "device"},
    {"disk_write", "bytes/s", kRateStep, kSlow, "device"},
    {"disk_read_operations", "count/s", 1, kSlow, "device"},
    {"disk_write_operations", "count/s", 1, kSlow, "device"},
    {"disk_busy", "ratio", kRatio, kSlow, "device"},
    {"disk_queue", "count", 0.01, kSlow, "device"},
    {"net_receive", "bytes/s", kRateStep, kSlow, "interface"},
    {"net_send", "bytes/s", kRateStep, kSlow, "interface"},
    {"net_drops", "count/s", 0.1, kSlow, "interface"},
    {"rdma_receive", "bytes/s", kRateStep, kSlow, "port"},
    {"rdma_send", "bytes/s", kRateStep, kSlow, "port"},
    {"cgroup_cpu_limit", "cores", 0.01, kSlow, ""},
    {"cgroup_cpu_throttled", "ratio", kRatio, kSlow, ""},
    {"cgroup_memory_limit", "bytes", kMiB, kSlow, ""},
    {"cgroup_memory_used", "bytes", kMiB, kSlow, ""},
    {"cgroup_memory_cache", "bytes", kMiB, kSlow, ""},
    {"cgroup_oom_kills", "count", 1, kSlow, ""},
    {"cgroup_psi_cpu_some", "ratio", kRatio, kSlow, ""},
    {"cgroup_psi_io_some", "ratio", kRatio, kSlow, ""},
    {"cgroup_psi_io_full", "ratio", kRatio, kSlow, ""},
    {"cgroup_psi_memory_some", "ratio", kRatio, kSlow, ""},
    {"cgroup_psi_memory_full", "ratio", kRatio, kSlow, ""},
    {"process_cpu", "cores", 0.01, kSlow, "role, rank"},
    {"process_memory", "bytes", kMiB, kSlow, "role, rank"},
    {"process_pss", "bytes", kMiB, kSlow, "role, rank"},
    {"process_count", "count", 1, kSlow, "role, rank"},
    {"process_threads", "count", 1, kSlow, "role, rank"},
    {"process_context_switches", "count/s", 1, kSlow, "role, rank"},
    {"process_io_read", "bytes/s", kRateStep, kSlow, "role, rank"},
    {"process_io_write", "bytes/s", kRateStep, kSlow, "role, rank"},
    {"process_io_read_calls", "bytes/s", kRateStep, kSlow, "role, rank"},
    {"shm_used", "bytes", kMiB, kSlow, ""},
    {"shm_total", "bytes", kMiB, kSlow, ""},
    {"loader_busy", "threads", 0.001, kSlow, "loader, rank, stage"},
    {"loader_blocked", "threads", 0.001, kSlow, "loader, rank, stage"},
    {"loader_threads", "count", 1, kSlow, "loader, rank, stage"},
    {"loader_samples", "count/s", 0.1, kSlow, "loader, rank, stage"},
    {"loader_read", "bytes/s", kRateStep, kSlow, "loader, rank"},
    {"loader_wait", "ratio", kRatio, kSlow, "loader, rank"},
    {"loader_ready_batches", "count", 1, kSlow, "loader, rank"},
    {"loader_ready_capacity", "count", 1, kSlow, "loader, rank"},
    {"gpu_utilization", "ratio", 0.01, kFast, "gpu"},
    {"gpu_memory_utilization", "ratio", 0.01, kFast, "gpu"},
    {"gpu_sm_active", "ratio", kRatio, kFast, "gpu"},
    {"gpu_sm_occupancy", "ratio", kRatio, kFast, "gpu"},
    {"gpu_tensor_active", "ratio", kRatio, kFast, "gpu"},
    {"gpu_dram_active", "ratio", kRatio, kFast, "gpu"},
    {"gpu_graphics_active", "ratio", kRatio, kSlow, "gpu"},
    {"gpu_integer_active", "ratio", kRatio, kSlow, "gpu"},
    {"gpu_tensor_half_active", "ratio", kRatio, kSlow, "gpu"},
    {"gpu_tensor_double_active", "ratio", kRatio, kSlow, "gpu"},
    {"gpu_tensor_integer_active", "ratio", kRatio, kSlow, "gpu"},
    {"gpu_fp64_active", "ratio", kRatio, kSlow, "gpu"},
    {"gpu_fp32_active", "ratio", kRatio, kSlow, "gpu"},
    {"gpu_fp16_active", "ratio", kRatio, kSlow, "gpu"},
    {"gpu_pcie_receive", "bytes/s", kMiB, kSlow, "gpu"},
    {"gpu_pcie_send", "bytes/s", kMiB, kSlow, "gpu"},
    {"gpu_nvlink_receive", "bytes/s", kMiB, kSlow, "gpu"},
    {"gpu_nvlink_send", "bytes/s", kMiB, kSlow, "gpu"},
    {"gpu_power", "W", 0.1, kSlow, "gpu"},
    {"gpu_energy", "J", 1, kSlow, "gpu"},
    {"gpu_memory_used", "bytes", kMiB, kSlow, "gpu"},
    {"gpu_memory_total", "bytes", kMiB, kSlow, "gpu"},
    {"gpu_sm_clock", "Hz", 1e6, kSlow, "gpu"},
    {"gpu_sm_clock_max", "Hz", 1e6, kSlow, "gpu"},
    {"gpu_memory_clock", "Hz", 1e6, kSlow, "gpu"},
    {"gpu_memory_clock_max", "Hz", 1e6, kSlow, "gpu"},
    {"gpu_temperature", "celsius", 1, kSlow, "gpu"},
    {"gpu_throttle_reasons", "bitmask", 0, kSlow, "gpu"},
    {"gpu_throttle_power", "ratio", kRatio, kSlow, "gpu"},
    {"gpu_throttle_thermal", "ratio", kRatio, kSlow, "gpu"},
    {"gpu_power_limit", "W", 0.1, kSlow, "gpu"},
    {"gpu_ecc_corrected", "count", 1, kSlow, "gpu"},
    {"gpu_ecc_uncorrected", "count", 1, kSlow, "gpu"},
    {"gpu_remapped_rows", "count", 1, kSlow, "gpu"},
    {"gpu_xid", "count", 0, kSlow, "gpu"},
    {"gpu_process_count", "count", 1, kSlow, "gpu"},
    {"gpu_process_memory", "bytes", kMiB, kSlow, "gpu, owner"},
    {"gpu_process_sm", "ratio", 0.01, kSlow, "gpu, owner"},
};

}  // namespace

std::span<const Metric> AllMetrics() { return kMetrics; }

record::SeriesKey KeyOf(std::string_view name, record::Labels labels) {
  const auto* metric = std::ranges::find(kMetrics, name, &Metric::name);
  FB_CHECK(metric != std::end(kMetrics));
  return {std::string(name), std::string(metric->unit), std::move(labels), metric->resolution};
}

}  // namespace fullbore::probe
