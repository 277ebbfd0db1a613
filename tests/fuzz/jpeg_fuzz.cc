// A JPEG file: header, scans and EXIF.
#include "fuzzed_image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fullbore::fuzz::FuzzImage({data, size});
  return 0;
}
