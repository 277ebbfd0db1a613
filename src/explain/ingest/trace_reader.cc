#include "explain/ingest/trace_reader.h"

#include "explain/ingest/foreign_formats.h"
#include "explain/ingest/kineto/kineto_reader.h"
#include "explain/ingest/nsys/nsys_reader.h"

namespace fullbore::ingest {

using record::Severity;

namespace {

constexpr int64_t kMaxNamedMembers =
    20;  // of the left-out members of an archive; the others are only counted

}  // namespace

Result<void> TraceReader::Read(const TraceFile& file, size_t number) {
  number_ = number;
  taken_.clear();
  switch (file.kind) {
    case FileKind::kSqlite:
      return ReadNsysFile(file.path);
    case FileKind::kArchive:
      return ReadArchive(file.path);
    case FileKind::kForeign:
      if (const auto foreign = ForeignFile(file.path)) return *foreign;
      break;
    case FileKind::kJson:
      break;
  }
  auto source = OpenBytes(file.path);
  if (!source) return source.error();
  return ReadJson(std::move(*source), file.path);
}

Result<void> TraceReader::ReadJson(std::unique_ptr<ByteSource> source, const std::string& name) {
  kineto::ReadOptions options;
  options.stacks = options_.stacks;
  if (options_.progress) {
    options.progress = [&](int64_t position, int64_t size) { options_.progress(name, position, size); };
  }
  auto trace = kineto::ReadKineto(std::move(source), name, options);
  if (!trace) return trace.error();
  TakeRanks(*trace, name);
  return {};
}

Result<void> TraceReader::ReadArchive(const std::string& path) {
  auto source = OpenBytes(path);
  if (!source) return source.error();
  ArchiveReader archive(std::move(*source));
  int64_t read = 0, left_out = 0;
  std::optional<Error> first_error;
  for (;;) {
    auto next = archive.Next();
    if (!next) {
      const Error error{next.error().code, "cannot read '" + path + "': " + next.error().text,
                        next.error().hint};
      if (read == 0) return error;
      say_(Severity::kError, "the rest is left out: " + ToString(error));
      break;
    }
    if (!*next) break;
    if (archive.name().starts_with("__MACOSX/"))
      continue;  // what macOS knows about the files besides their bytes
    const std::string name = path + ":" + archive.name();
    if (wanted_ && !wanted_(name)) continue;
    const auto member = ReadMember(archive, name);
    if (!member && !first_error) first_error = member.error();
    if (member) {
      ++read;
    } else if (++left_out <= kMaxNamedMembers) {
      say_(Severity::kError, "left out: " + ToString(member.error()));
    }
  }
  if (left_out > kMaxNamedMembers) {
    say_(Severity::kError,
         "left out: " + std::to_string(left_out - kMaxNamedMembers) + " more files of '" + path + "'");
  }
  if (read == 0 && left_out == 1) return *first_error;  // packed alone: what it is says more
  if (read == 0) return Error{ErrorCode::kCorrupt, "'" + path + "' holds no readable trace", ""};
  return {};
}

Result<void> TraceReader::ReadMember(ArchiveReader& archive, const std::string& name) {
  constexpr size_t kHeadBytes = 512;
  auto contents = Unpack(archive.Contents());
  if (!contents) return contents.error();
  auto head = HeadOf(**contents, kHeadBytes);
  if (!head)
    return Error{head.error().code, "cannot read '" + name + "': " + head.error().text, head.error().hint};
  if (auto foreign = ForeignFormat(name, *head)) return *foreign;
  if (head->starts_with("SQLite format 3")) {
    return Error{ErrorCode::kUnsupported,
                 "'" + name + "' is an SQLite file, which cannot be read in an archive",
                 "unpack it, and explain the file itself"};
  }
  return ReadJson(Rejoined(std::move(*head), std::move(*contents)), name);
}

Result<void> TraceReader::ReadNsysFile(const std::string& path) {
  auto traces = nsys::ReadNsys(path);
  if (!traces) return traces.error();
  for (timeline::DeviceTrace& trace : *traces) TakeRanks(trace, path);
  return {};
}

void TraceReader::TakeRanks(timeline::DeviceTrace& trace, const std::string& name) {
  TakeOne(trace, name);
  for (timeline::DeviceTrace& other : trace.others) TakeOne(other, name);
}

void TraceReader::TakeOne(timeline::DeviceTrace& trace, const std::string& name) {
  take_(trace, {number_, name, taken_[name]++});
}

}  // namespace fullbore::ingest
