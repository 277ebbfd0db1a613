// A WebP file: container, animation, EXIF, and both of its codings.
#include "fuzzed_image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fullbore::fuzz::FuzzImage({data, size});
  return 0;
}
