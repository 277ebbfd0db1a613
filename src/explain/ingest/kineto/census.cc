#include "explain/ingest/kineto/census.h"

#include <algorithm>

#include "base/text.h"

namespace fullbore::ingest::kineto {
namespace {

constexpr const char* kRecordItself =
    "fullbore run -- COMMAND records the training's own steps, loading and host time";

struct ForeignDevice {
  std::string_view process;   // the beginning of a process's name
  std::string_view category;  // the beginning of an event's category
  const char* what;           // behind "'x' is a trace of"
  const char* hint;
};

// What is told by more comes first: XLA's traces have a host, too.
constexpr ForeignDevice kForeign[] = {
    {"Ascend Hardware", "", "torch_npu on an Ascend device, whose operations are not read", kRecordItself},
    {"CANN", "", "torch_npu on an Ascend device, whose operations are not read", kRecordItself},
    {"/device:TPU:", "",
     "XLA's profiler (JAX, TensorFlow or PyTorch/XLA) on a TPU, whose operations are not read",
     kRecordItself},
    {"/device:", "", "XLA's profiler (JAX or TensorFlow), whose operations are not read",
     "record with nsys profile --trace cuda,nvtx and nsys export --type sqlite; or with fullbore run -- "
     "COMMAND"},
    {"/job:", "", "TensorFlow's profiler, whose operations are not read", kRecordItself},
    {"/host:CPU", "", "XLA's profiler (JAX or TensorFlow), whose operations are not read", kRecordItself},
    {"CPU HIP API", "", "rocprof, whose operations are not read",
     "record with torch.profiler, which writes a trace on ROCm, too: "
     "prof.export_chrome_trace(\"trace.json.gz\")"},
    {"CPU HSA API", "", "rocprof, whose operations are not read",
     "record with torch.profiler, which writes a trace on ROCm, too: "
     "prof.export_chrome_trace(\"trace.json.gz\")"},
    {"", "mtia_", "an MTIA device, whose operations are not read", kRecordItself},
    {"", "hpu_", "a Gaudi device (HPU), whose operations are not read", kRecordItself},
    {"", "privateuse1_", "a device of PyTorch's own extension (PrivateUse1), whose operations are not read",
     kRecordItself},
};

int FirstOf(int a, int b) { return a < 0 ? b : b < 0 ? a : std::min(a, b); }

template <typename Matches>
int Find(Matches matches) {
  const auto* found = std::find_if(std::begin(kForeign), std::end(kForeign), matches);
  return found == std::end(kForeign) ? -1 : static_cast<int>(found - std::begin(kForeign));
}

}  // namespace

void Census::CountUnread(std::string_view category) {
  constexpr size_t kMaxCategories = 64;
  auto found = unread_.find(category);
  if (found == unread_.end()) {
    if (unread_.size() >= kMaxCategories) return;
    found = unread_.emplace(category, 0).first;
    device_ = FirstOf(device_, Find([&](const ForeignDevice& device) {
                        return !device.category.empty() && category.starts_with(device.category);
                      }));
  }
  ++found->second;
}

void Census::TakeMetadata(const RawEvent& event) {
  if (event.name != "process_name") return;
  Members args(event.args);
  while (args.Next()) {
    if (args.key() != "name") continue;
    device_ = FirstOf(device_, Find([&](const ForeignDevice& device) {
                        return !device.process.empty() && args.value().starts_with(device.process);
                      }));
  }
}

std::optional<Error> Census::Foreign(const std::string& name) const {
  if (device_ < 0) return std::nullopt;
  const ForeignDevice& device = kForeign[device_];
  return Error{ErrorCode::kUnsupported, "'" + name + "' is a trace of " + device.what, device.hint};
}

std::string Census::Held() const {
  struct Named {
    const char *one, *several;
  };
  constexpr std::array<Named, kKinds> kNames = {{
      {"operator of the CPU", "operators of the CPU"},
      {"range that the program named", "ranges that the program named"},
      {"Python function", "Python functions"},
      {"call of the device's runtime", "calls of the device's runtime"},
      {"reading of a counter", "readings of counters"},
  }};
  std::string held;
  const auto add = [&held](int64_t count, const Named& named, const std::string& more = "") {
    if (count == 0) return;
    held += (held.empty() ? "" : ", ") + FormatCount(static_cast<double>(count)) + " " +
            (count == 1 ? named.one : named.several) + more;
  };
  for (size_t kind = 0; kind < kKinds; ++kind) add(counts_[kind], kNames[kind]);
  int64_t unread = 0;
  const std::pair<const std::string, int64_t>* most = nullptr;
  for (const auto& one : unread_) {
    unread += one.second;
    if (most == nullptr || one.second > most->second) most = &one;
  }
  if (most == nullptr) return held;
  add(unread, {"event of a kind that is not read", "events of kinds that are not read"},
      most->first.empty() ? "" : " ('" + Unescaped(most->first) + "')");
  return held;
}

}  // namespace fullbore::ingest::kineto
