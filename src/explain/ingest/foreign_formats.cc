#include "explain/ingest/foreign_formats.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "base/text.h"

namespace fullbore::ingest {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool StartsWithoutCase(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(),
                    [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

// ---- text ----

bool IsUtf16(std::string_view head) {
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) return true;
  const std::string_view first = head.substr(0, 2);  // without a mark: '{' or '[' and a zero byte
  return first == std::string_view("{\0", 2) || first == std::string_view("[\0", 2) ||
         first == std::string_view("\0{", 2) || first == std::string_view("\0[", 2);
}

bool IsGitLfsPointer(std::string_view head) {
  return head.starts_with("version https://git-lfs.github.com/spec/");
}

bool IsWebPage(std::string_view head) {
  const std::string_view text = Trim(WithoutByteOrderMark(head));
  return StartsWithoutCase(text, "<!doctype html") || StartsWithoutCase(text, "<html");
}

bool IsXml(std::string_view head) { return Trim(WithoutByteOrderMark(head)).starts_with("<?xml"); }

// ---- JSON ----

// The first member of an object, so that the word elsewhere in a trace does not count.
bool BeginsWithMember(std::string_view head, std::string_view member) {
  std::string_view text = Trim(WithoutByteOrderMark(head));
  if (!text.starts_with('{')) return false;
  text = Trim(text.substr(1));
  return text.starts_with('"') && text.substr(1).starts_with(member) &&
         text.substr(1 + member.size()).starts_with('"');
}

bool IsRocprofJson(std::string_view head) { return BeginsWithMember(head, "rocprofiler-sdk-tool"); }

bool IsChakraJson(std::string_view head) {
  return BeginsWithMember(head, "schema") && (Contains(head, "chakra") || Contains(head, "\"nodes\"")) &&
         !Contains(head, "\"traceEvents\"");
}

bool IsSpeedscope(std::string_view head) {
  return Contains(head, "speedscope.app/file-format-schema.json") && !Contains(head, "\"traceEvents\"");
}

// ---- protocol buffers ----

struct Field {
  uint64_t number = 0;
  unsigned type = 0;
};
constexpr unsigned kVarint = 0, kBytes = 2;

std::optional<uint64_t> TakeVarint(std::string_view* bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 63 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<Field> TakeTag(std::string_view* bytes) {
  const auto tag = TakeVarint(bytes);
  if (!tag) return std::nullopt;
  return Field{*tag >> 3, static_cast<unsigned>(*tag & 7)};
}

// What is in the first message of a file that is a list of messages in field 1; empty if it is none.
std::string_view FirstMessage(std::string_view head) {
  const auto field = TakeTag(&head);
  if (!field || field->number != 1 || field->type != kBytes) return {};
  const auto size = TakeVarint(&head);
  if (!size || *size < 2) return {};
  return head.substr(0, std::min<uint64_t>(*size, head.size()));
}

// tensorflow.profiler.XSpace: a list of planes, each with its number (1) and its name (2).
bool IsXPlane(std::string_view head) {
  std::string_view plane = FirstMessage(head);
  while (const auto field = TakeTag(&plane)) {
    const auto value = TakeVarint(&plane);
    if (!value) return false;
    if (field->number == 1 && field->type == kVarint) continue;
    if (field->number != 2 || field->type != kBytes) return false;
    const std::string_view name = plane.substr(0, std::min<uint64_t>(*value, plane.size()));
    return name.starts_with("/host:") || name.starts_with("/device:") || name == "Task Environment";
  }
  return false;
}

// perfetto.protos.Trace: a list of packets, whose first field is one of these.
bool IsPerfetto(std::string_view head) {
  std::string_view packet = FirstMessage(head);
  const auto field = TakeTag(&packet);
  if (!field) return false;
  constexpr std::array<uint64_t, 5> kNumbers = {3, 8, 10, 13, 58};  // user, time, sequence, flags, clock
  constexpr std::array<uint64_t, 6> kMessages = {6,  11, 33,
                                                 36, 45, 60};  // clocks, events, config, mark, system, track
  const auto among = [&](const auto& known) {
    return std::find(known.begin(), known.end(), field->number) != known.end();
  };
  return field->type == kVarint ? among(kNumbers) : field->type == kBytes && among(kMessages);
}

// ---- other bytes ----

bool IsPickle(std::string_view head) {
  return head.size() > 3 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5 &&
         (head[1] < 4 ? head[2] == '}' || head[2] == 'c' || head[2] == ']' : head[2] == '\x95');
}

bool IsMemorySnapshot(std::string_view head) {
  return IsPickle(head) && (Contains(head, "segments") || Contains(head, "device_traces"));
}

bool IsPackedOtherwise(std::string_view head) {
  return head.starts_with("7z\xbc\xaf\x27\x1c") || head.starts_with("Rar!\x1a\x07") ||
         head.starts_with("\x04\x22\x4d\x18") || head.starts_with("LZIP");
}

bool IsComputeReport(std::string_view head) { return head.starts_with(std::string_view("NVR\0", 4)); }

bool Never(std::string_view) { return false; }

struct Format {
  bool (*is)(std::string_view head);
  std::array<std::string_view, 3> suffixes;  // where the bytes say nothing
  const char* what;                          // behind "'x' is"
  const char* hint;                          // FILE stands for the file's path
};

constexpr const char* kTraceAgain =
    "Fullbore reads traces: torch.profiler's export_chrome_trace, or nsys export --type sqlite";

// In this order: what is told by more comes first.
constexpr Format kFormats[] = {
    {IsGitLfsPointer,
     {},
     "a pointer of Git LFS, not the file itself",
     "fetch the file: git lfs pull --include FILE"},
    {IsWebPage,
     {},
     "a web page (HTML), not a trace",
     "a server's error page, or a viewer's page, was saved in its place: download the file itself"},
    {IsXml, {}, "an XML document, not a trace", "if it is a server's error message, download the file again"},
    {IsUtf16,
     {},
     "text in UTF-16, as PowerShell's '>' writes it",
     "convert it: iconv -f UTF-16 -t UTF-8 FILE > trace.json"},
    {IsMemorySnapshot,
     {},
     "a memory snapshot of PyTorch (pickle), not a trace of time",
     "fullbore explain takes one by itself; for time, record with torch.profiler and export_chrome_trace"},
    {IsPickle, {}, "a Python pickle, not a trace", kTraceAgain},
    {IsRocprofJson,
     {},
     "the JSON output of rocprofv3, whose format is not read",
     "record with torch.profiler, which writes a trace on ROCm, too: "
     "prof.export_chrome_trace(\"trace.json.gz\")"},
    {IsChakraJson,
     {".et", "", ""},
     "an execution trace (Chakra): operators and their order, but no device's time",
     "record with torch.profiler beside it: prof.export_chrome_trace(\"trace.json.gz\")"},
    {IsSpeedscope,
     {},
     "a profile for speedscope: samples of stacks, not a trace of events",
     "fullbore explain --pid PID samples a process itself; for a trace, record with torch.profiler"},
    {IsXPlane,
     {".xplane.pb", "", ""},
     "a profile of XLA (XSpace, JAX or TensorFlow), whose format is not read",
     "record with nsys profile --trace cuda,nvtx and nsys export --type sqlite; or with fullbore run -- "
     "COMMAND"},
    {IsPerfetto,
     {".pftrace", ".perfetto-trace", ".perfetto"},
     "a Perfetto trace (protocol buffers), whose format is not read",
     "take the JSON it was made from; else record with torch.profiler: "
     "prof.export_chrome_trace(\"trace.json.gz\")"},
    {IsComputeReport,
     {".ncu-rep", "", ""},
     "a report of Nsight Compute: single kernels, not a run",
     "record the run: nsys profile --trace cuda,nvtx, then nsys export --type sqlite"},
    {IsPackedOtherwise,
     {".7z", ".rar", ".lz4"},
     "packed in a way that is not read",
     "unpack it, or pack it with gzip, zstd, xz, bzip2, zip or tar"},
    {Never,
     {".nsys-rep", ".qdrep", ".qdstrm"},
     "a report of Nsight Systems, which only nsys itself reads",
     "export it: nsys export --type sqlite FILE"},
};

bool EndsInOneOf(const std::string& path, const std::array<std::string_view, 3>& suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](std::string_view suffix) { return !suffix.empty() && path.ends_with(suffix); });
}

// Bytes that a reader of ours takes, whatever the file is called.
bool IsRead(std::string_view head) {
  const std::string_view text = Trim(WithoutByteOrderMark(head));
  return text.starts_with('{') || text.starts_with('[') || head.starts_with("SQLite format 3") ||
         head.starts_with("PK\3\4") || (head.size() > 262 && head.compare(257, 5, "ustar") == 0);
}

Error AsError(const Format& format, const std::string& path) {
  std::string hint = format.hint;
  if (const size_t at = hint.find("FILE"); at != std::string::npos) hint.replace(at, 4, "'" + path + "'");
  return {ErrorCode::kUnsupported, "'" + path + "' is " + format.what, hint};
}

}  // namespace

std::string_view WithoutByteOrderMark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

std::optional<Error> ForeignFormat(const std::string& path, std::string_view head) {
  for (const Format& format : kFormats) {
    if (format.is(head)) return AsError(format, path);
  }
  if (IsRead(head)) return std::nullopt;
  for (const Format& format : kFormats) {
    if (EndsInOneOf(path, format.suffixes)) return AsError(format, path);
  }
  return std::nullopt;
}

}  // namespace fullbore::ingest
