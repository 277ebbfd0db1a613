#include "measure/collect/device_window.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/fd.h"
#include "base/guarded_file.h"

namespace fullbore::collect {

namespace {

// A few steps of a large model take some tens of megabytes. The trace is in memory while it is compressed.
constexpr off_t kMaxTraceBytes = 512 << 20;
constexpr int kZstdLevel = 3;  // a tenth of the size, at some hundred megabytes a second

Error Unusable(const std::string& name, const std::string& why) {
  return {ErrorCode::kCorrupt, "the device window '" + name + "' cannot be used: " + why, ""};
}

Result<std::string> ReadTrace(const std::string& path, const std::string& name) {
  const auto fd = OpenRegularFile(path);
  if (!fd) return fd.error();
  struct stat status {};
  if (fstat(fd->get(), &status) != 0) return Unusable(name, "its size is unknown");
  if (status.st_size > kMaxTraceBytes) return Unusable(name, "its trace is larger than 512 MB");
  return ReadToEnd(fd->get(), path);
}

}  // namespace

Result<record::DeviceWindow> TakeDeviceWindow(const std::string& directory, const DeviceWindowNote& note) {
  const std::string& name = note.file;
  if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.'))
    return Unusable(name, "that is not the name of a file in the channel");
  const std::string path = directory + "/" + name;
  const auto trace = ReadTrace(path, name);
  (void)unlink(path.c_str());
  if (!trace) return trace.error();
  record::DeviceWindow window;
  window.first_step = note.first_step;
  window.steps = note.steps;
  window.trace.resize(ZSTD_compressBound(trace->size()));
  const size_t size =
      ZSTD_compress(window.trace.data(), window.trace.size(), trace->data(), trace->size(), kZstdLevel);
  if (ZSTD_isError(size)) return Unusable(name, ZSTD_getErrorName(size));
  window.trace.resize(size);
  return window;
}

}  // namespace fullbore::collect
