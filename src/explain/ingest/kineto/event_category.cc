#include "explain/ingest/kineto/event_category.h"

namespace fullbore::ingest::kineto {

Category CategoryNamed(std::string_view name) {
  if (name.empty()) return Category::kIgnored;
  switch (name[0]) {
    case 'c':
      if (name == "cpu_op") return Category::kOperator;
      if (name == "cuda_runtime" || name == "cuda_driver") return Category::kCall;
      if (name == "cuda_profiler_range") return Category::kKernelCounters;
      if (name == "cuda_sync") return Category::kSync;
      break;
    case 'k':
    case 'K':
      if (name.substr(1) == "ernel") return Category::kKernel;
      break;
    case 'g':
      if (name == "gpu_memcpy" || name == "gpu_memset") return Category::kCopy;
      if (name == "gpu_user_annotation") return Category::kDeviceAnnotation;
      break;
    case 'M':
      if (name == "Memcpy" || name == "Memset") return Category::kCopy;
      break;
    case 'u':
      if (name == "user_annotation") return Category::kAnnotation;
      break;
    case 'O':
      if (name == "Operator") return Category::kOperator;
      break;
    case 'p':
    case 'P':
      if (name.substr(1) == "ython_function" || name == "Python") return Category::kPython;
      break;
    case 'R':
      if (name == "Runtime") return Category::kCall;
      break;
    default:
      break;
  }
  return name.ends_with("_runtime") || name.ends_with("_driver") ? Category::kCall : Category::kIgnored;
}

bool IsOfTheProfiler(std::string_view category) {
  return category == "Trace" || category == "overhead" || category == "gpu_user_annotation";
}

}  // namespace fullbore::ingest::kineto
