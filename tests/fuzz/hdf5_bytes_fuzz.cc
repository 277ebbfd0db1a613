// The bytes of an HDF5 file through our driver. libhdf5 itself does not survive this (1.10.8 crashes within
// seconds, in the heap of variable-length values), and its crashes are not ours to fix: the target is built,
// but runs only by name. hdf5_fuzz tests what our own code does with valid files.
#include "fuzzed_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  fullbore::fuzz::ReadEverything(fullbore::loader::OpenHdf5, {{"a.h5", bytes}}, {});
  return 0;
}
