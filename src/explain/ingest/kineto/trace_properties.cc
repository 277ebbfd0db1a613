#include "explain/ingest/kineto/trace_properties.h"

#include <string>

#include "explain/ingest/kineto/event.h"

namespace fullbore::ingest::kineto {

bool WantsProperty(std::string_view key) {
  return key == "distributedInfo" || key == "deviceProperties" || key == "baseTimeNanoseconds" ||
         key == "baseTimeNanosec" || key == "traceName" || key.ends_with("_version") || key == "with_stack" ||
         key == "profile_memory" || key == "record_shapes";
}

void TakeProperty(std::string_view key, std::string_view value, timeline::DeviceTrace& trace) {
  const std::string name(key);
  if (name.starts_with("baseTimeNanosec")) {
    trace.base_ns = Integer(value).value_or(0);
  } else if (name == "distributedInfo") {
    Members info(value);
    while (info.Next()) {
      const auto number = Integer(info.value());
      if (info.key() == "rank" && number) trace.rank = static_cast<int>(*number);
      if (info.key() == "world_size" && number) trace.world_size = static_cast<int>(*number);
      if (info.key() == "backend") trace.facts["backend"] = timeline::JsonText(Unescaped(info.value()));
    }
  } else if (name == "deviceProperties") {
    size_t at = 0;  // a flat list of flat objects
    while ((at = value.find('{', at)) != std::string_view::npos) {
      Members device(value.substr(at));
      std::string_view called;
      int64_t multiprocessors = 0;
      while (device.Next()) {
        if (device.key() == "name") called = device.value();
        if (device.key() == "numSms") multiprocessors = Integer(device.value()).value_or(0);
      }
      if (!called.empty()) {
        trace.devices.push_back(Unescaped(called));
        trace.multiprocessors.push_back(multiprocessors);
      }
      const size_t next = value.find('}', at);
      if (next == std::string_view::npos) break;
      at = next;
    }
  } else if (Integer(value)) {
    trace.facts[name] = std::string(value);
  }
}

}  // namespace fullbore::ingest::kineto
