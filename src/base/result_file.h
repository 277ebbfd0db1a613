// A file that a command writes because its user named it: `--json FILE`, `--html FILE`, `-o FILE`. The one way to write
// one, so that nothing of the user's is ever lost to a name that was forgotten or mistyped.
//
//   what stands there                                  what happens
//   nothing, an empty file, or a result of this format it is replaced in one step, and whole until then
//   any other regular file                             refused; replaced in one step if that is forced
//   a symbolic link                                    what it leads to is judged, and replaced where it is
//   a terminal, /dev/null, a FIFO, /dev/fd/N           written through
//   a directory, a socket, a disk, an input            refused, forced or not
//
// Judged before the work is begun, and again when it is written: a training takes hours.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/input_files.h"
#include "base/result.h"

namespace fullbore {

// How a file of ours is known: by its first kBytesOfMark bytes.
struct ResultFormat {
  const char* name;  // with its article: "a report"
  bool (*is_ours)(std::string_view head);
  bool can_be_read;  // where it lies in a directory that is read as a whole
};

inline constexpr size_t kBytesOfMark = 4096;

// Every JSON object of ours begins with `"schema": "fullbore.NAME/1"`, or is in an array of such; a page names us as its
// generator, a diff in its first line, and a compressed trace in the comment of its gzip header.
extern const ResultFormat kJsonResult, kHtmlResult, kDiffResult, kTraceResult;
inline constexpr char kDiffMark[] = "# fullbore tune --patch\n";
inline constexpr char kTraceMark[] = "fullbore.export/1";

class ResultFile {
 public:
  ResultFile(std::string of_option, const ResultFormat& format)
      : option(std::move(of_option)), format_(&format) {}

  std::string option;  // for messages: "--json"
  std::string path;    // "-": standard output; empty: not wanted
  bool force = false;
  InputFiles inputs;
  mode_t mode = kOrdinaryFile;  // of a new file

  bool wanted() const { return !path.empty(); }
  const ResultFormat& format() const { return *format_; }

  // Whether the results go where a command also prints.
  bool IsStandardOutput() const;

  // An error if writing would be refused. Changes nothing.
  Result<void> Judge() const;

  // Writes all of it or, of a regular file, nothing. A FIFO waits a moment for its reader.
  Result<void> Write(std::string_view text) const;

  // For what comes piece by piece. A regular file begins empty.
  Result<UniqueFd> Open() const;

  // Whether both would replace the same file, or share standard output.
  bool IsSameAs(const ResultFile& other) const;

 private:
  const ResultFormat* format_;
};

// Writes all of it to an open file. A reader that has gone (kUnavailable) and a limit on sizes are
// errors, not signals.
Result<void> WriteToEnd(int fd, std::string_view text, const std::string& name);

}  // namespace fullbore
