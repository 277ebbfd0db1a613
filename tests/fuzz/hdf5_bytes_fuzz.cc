// An HDF5 file through our driver. What libhdf5 itself does with damaged metadata is not ours to mend: the
// target is built, and not among those that run by default (docs/loader.md says what that means).
#include "fuzzed_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  fullbore::fuzz::ReadEverything(fullbore::loader::OpenHdf5, {{"a.h5", bytes}}, {});
  return 0;
}
