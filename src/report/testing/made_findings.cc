#include "report/testing/made_findings.h"

#include <utility>

#include "base/clock.h"

namespace fullbore::report::testing {

using diagnose::Finding;

constexpr auto kWarning = diagnose::Severity::kWarning;
constexpr auto kCritical = diagnose::Severity::kCritical;

Finding FindingOf(std::string id, diagnose::Severity severity, double share, std::string title) {
  Finding finding;
  finding.id = std::move(id);
  finding.severity = severity;
  finding.share = share;
  finding.title = std::move(title);
  return finding;
}

Finding TooFewWorkers(const record::Stage& stage) {
  Finding finding =
      FindingOf("input-bound", kCritical, 0.41,
                "The GPU waits for data 41 % of the time: 2 loader workers deliver 640 images/s, the GPU "
                "could take 1,080.");
  finding.cause = "too-few-workers";
  finding.evidence = {
      {"step time spent waiting for the next batch", 0.41, "ratio", "hook", "data_wait",
       stage.begin_ns + 21 * kNsPerSecond, stage.end_ns},
      {"batches asked for while the queue was empty", 0.98, "ratio", "hook", "", {}, {}},
      {"CPU of the loader's workers", 1.94, "cores", "proc", "process_cpu{role=loader}", {}, {}},
      {"CPU cores in use, of 16", 2.1, "cores", "proc", "cpu_utilization", {}, {}},
      {"time to load one batch of 128 in one worker", 392, "ms", "hook", "", {}, {}}};
  finding.fix = {"Use 4 loader workers: 16 cores are there and 2 are in use.",
                 "Or decode faster: fullbore.data reads the same folder with native threads.",
                 "Or store the images at the size in which they are trained."};
  finding.change = "DataLoader(num_workers=4)";
  finding.where = {
      {"/home/ada/resnet/train.py", 57, "loader = DataLoader(dataset, batch_size=128, num_workers=2)", 0.41},
      {"/home/ada/resnet/train.py", 74, "for images, labels in loader:", 0.40}};
  finding.speedup = {1.67, 1.63, 1.71};
  finding.method = "replay of 1,778 steps with 4 workers of the measured fetch time and a queue of 8 batches";
  return finding;
}

Finding NoTensorCores() {
  Finding finding = FindingOf("no-tensor-cores", kWarning, 0.38,
                              "Matmuls and convolutions run in fp32 while the tensor cores idle at 12 %.");
  finding.evidence = {{"tensor cores active", 0.12, "ratio", "nvml", "gpu_tensor_active{gpu=0}", {}, {}},
                      {"SMs active", 0.47, "ratio", "nvml", "gpu_sm_active{gpu=0}", {}, {}}};
  finding.fix = {"Run forward and loss under autocast in bf16.", "Allow TF32 for matmuls."};
  finding.change = "torch.autocast(\"cuda\", torch.bfloat16)";
  finding.where = {{"/home/ada/resnet/train.py", 81, "loss = criterion(model(images), labels)", 0.3}};
  finding.speedup = {1.3, 1.2, 1.4};
  finding.method =
      "kernel classes shortened by the measured ratio of bf16 to fp32 on this device, then replayed";
  return finding;
}

Finding PageableCopies() {
  Finding finding =
      FindingOf("copy-bound", kWarning, 0.03, "Pageable copies to the GPU take 3 % of the step.");
  finding.evidence = {{"exposed copy time", 0.03, "ratio", "hook", "", {}, {}}};
  finding.fix = {"Pin the batches and copy without blocking."};
  finding.change = "pin_memory=True, non_blocking=True";
  finding.where = {{"/home/ada/resnet/train.py", 79, "images = images.to(device)", 0.03}};
  finding.speedup = {1.03, 1.03, 1.03};
  finding.method = "the exposed copies removed, then replayed";
  return finding;
}

}  // namespace fullbore::report::testing
