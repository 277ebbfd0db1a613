// libjpeg with an interface that suits us: input from a span, errors as values.
//
// libjpeg reports an error by a function that must not return, so we leave it by longjmp. A longjmp that
// skips a destructor is undefined, and one that passes through setjmp's own function loses its local
// variables. Therefore: all calls that can fail happen inside Guarded(), in a lambda that is trivially
// destructible, and whose variables live in the caller.
//
// Warnings are errors here if they mean that pixels are made up (libjpeg would fill in gray): the authors of
// libjpeg-turbo ask that of programs that read untrusted files (CVE-2019-13960).
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <type_traits>

// After <cstdio> and <cstddef>: it uses FILE and size_t without including them.
#include <jerror.h>
#include <jpeglib.h>

#include "base/result.h"

namespace fullbore::loader {

// Holds pointers to itself: never moved. A file's tables outlive it inside a jpeg_decompress_struct, and the
// next file could lack its own unnoticed; so each file gets a fresh one, which is too cheap to show up in
// bench/loader/decode_bench.cc.
struct JpegSession {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf escape;

  const uint8_t* begin;
  const uint8_t* end;
  bool open;         // `info` is to be destroyed
  bool in_header;    // before the first scan's data
  bool ended;        // libjpeg asked for more than the file has, and got an end marker instead
  int most_scans;    // 0: not known yet
  int orientation;   // EXIF; 0: none seen
  bool out_of_data;  // the error is that the file ends
  int code;          // libjpeg's code of the error; 0: one of ours
  char message[JMSG_LENGTH_MAX];
};

// Calls that return true when none of them failed. Not inlined: the caller's variables stay intact.
template <typename Calls>
[[gnu::noinline]] bool Guarded(JpegSession& session, const Calls& calls) {
  static_assert(std::is_trivially_destructible_v<Calls>);
  if (setjmp(session.escape) != 0) return false;
  calls();
  return true;
}

// Begins with `bytes`, which stay valid, and reads until the first scan's data.
bool OpenJpeg(JpegSession& session, std::span<const uint8_t> bytes);
void CloseJpeg(JpegSession& session);

// Inside Guarded only: ends the calls with an error of ours.
[[noreturn]] void FailJpeg(JpegSession& session, const char* message);

// The last failure, with the offset in the file.
Error JpegError(const JpegSession& session);

}  // namespace fullbore::loader
