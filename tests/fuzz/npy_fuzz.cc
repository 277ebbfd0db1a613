// A file in NumPy's format. Its data lies within the given bytes and is as long as its shape says.
#include <cstdint>

#include "loader/core/image/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto array = fullbore::loader::ParseNpy({data, size});
  if (!array) return 0;
  uint64_t elements = 1;
  for (const int64_t n : array->shape) {
    FB_CHECK(n >= 0);
    elements *= static_cast<uint64_t>(n);
  }
  FB_CHECK(array->data.size() == elements * fullbore::loader::BytesOf(array->dtype));
  FB_CHECK(array->data.data() >= data && array->data.data() + array->data.size() <= data + size);
  return 0;
}
