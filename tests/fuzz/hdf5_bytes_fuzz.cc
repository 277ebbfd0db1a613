// The bytes of an HDF5 file through our driver. libhdf5 itself does not stand this (1.10.8 crashes within seconds, in the heap
// of variable-length values), and its crashes are not ours to mend: the target is built, and run by name only. What our own
// code makes of what libhdf5 says is hdf5_fuzz's.
#include "fuzzed_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  fullbore::fuzz::ReadEverything(fullbore::loader::OpenHdf5, {{"a.h5", bytes}}, {});
  return 0;
}
