// Reads the traces that are in a file, one after the other: JSON, what an archive holds, exports of Nsight Systems.
// Which rank each of them is decides who takes them.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "explain/ingest/archive_reader.h"
#include "explain/ingest/byte_source.h"
#include "explain/ingest/ingest.h"
#include "explain/ingest/trace_files.h"
#include "timeline/device/trace.h"

namespace fullbore::ingest {

// Where a trace was read, so that it can be found again.
struct TracePlace {
  size_t file = 0;   // its number, as given to Read
  std::string name;  // the file's, or "archive:member"
  size_t nth = 0;    // of those of this name: one file may hold the traces of several ranks

  auto operator<=>(const TracePlace&) const = default;
};

class TraceReader {
 public:
  // A trace is valid only during the call.
  using Take = std::function<void(timeline::DeviceTrace& trace, const TracePlace& place)>;
  using Say = std::function<void(record::Severity severity, std::string text)>;
  using Wanted = std::function<bool(const std::string& name)>;

  // `options` outlives the reader. `wanted`: of an archive, only members of these names are read; all without it.
  TraceReader(const TraceOptions& options, Take take, Say say, Wanted wanted = nullptr)
      : options_(options), take_(std::move(take)), say_(std::move(say)), wanted_(std::move(wanted)) {}

  Result<void> Read(const TraceFile& file, size_t number);

 private:
  Result<void> ReadJson(std::unique_ptr<ByteSource> source, const std::string& name);
  Result<void> ReadArchive(const std::string& path);
  Result<void> ReadMember(ArchiveReader& archive, const std::string& name);
  Result<void> ReadNsysFile(const std::string& path);
  void TakeRanks(timeline::DeviceTrace& trace, const std::string& name);
  void TakeOne(timeline::DeviceTrace& trace, const std::string& name);

  const TraceOptions& options_;
  const Take take_;
  const Say say_;
  const Wanted wanted_;
  size_t number_ = 0;                    // of the file that is being read
  std::map<std::string, size_t> taken_;  // from it, by name
};

}  // namespace fullbore::ingest
