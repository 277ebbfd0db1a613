// What kind of event a category names.
#pragma once

#include <cstdint>
#include <string_view>

namespace fullbore::ingest::kineto {

// Category names depend on the version of PyTorch: 1.8 wrote "Kernel" and "Operator", since 1.10 they are
// "kernel" and "cpu_op".
enum class Category : uint8_t {
  kIgnored,
  kKernel,
  kCopy,
  kCall,
  kOperator,
  kAnnotation,
  kPython,
  kKernelCounters,
  kSync,
  kDeviceAnnotation
};

Category CategoryNamed(std::string_view name);

// Whether it says nothing about the training.
bool IsOfTheProfiler(std::string_view category);

}  // namespace fullbore::ingest::kineto
