#include "loader/core/image/jpeg_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "loader/core/image/byte_order.h"
#include "loader/core/image/exif.h"
#include "loader/core/image/pixels.h"

namespace fullbore::loader {
namespace {

constexpr JOCTET kEndMarker[2] = {0xFF, JPEG_EOI};

JpegSession& SessionOf(jpeg_common_struct* info) { return *static_cast<JpegSession*>(info->client_data); }
JpegSession& SessionOf(jpeg_decompress_struct* info) { return *static_cast<JpegSession*>(info->client_data); }

[[noreturn]] void LeaveLibrary(jpeg_common_struct* info) {
  JpegSession& session = SessionOf(info);
  session.code = info->err->msg_code;
  info->err->format_message(info, session.message);
  std::longjmp(session.escape, 1);
}

[[noreturn]] void FailAtEnd(JpegSession& session) {
  session.out_of_data = true;
  FailJpeg(session, "the file ends");
}

// Whether the pixels are still those of the file after this warning of libjpeg.
bool Harmless(const jpeg_error_mgr& errors) {
  switch (errors.msg_code) {
    case JWRN_ADOBE_XFORM:     // an unknown colour transform: treated as the common one, as all programs do
    case JWRN_JFIF_MAJOR:      // an unknown version of JFIF
    case JWRN_NOT_SEQUENTIAL:  // odd parameters of a sequential scan, which are not used
    case JWRN_BOGUS_ICC:       // colour profiles are not applied
      return true;
    case JWRN_EXTRANEOUS_DATA: {
      // Bytes left over before a marker: cameras pad that way. Before a restart marker it is lost data.
      const int marker = errors.msg_parm.i[1];
      return marker < JPEG_RST0 || marker > JPEG_RST0 + 7;
    }
    default:
      return false;
  }
}

void OnMessage(jpeg_common_struct* info, int level) {
  if (level < 0 && !Harmless(*info->err)) LeaveLibrary(info);
}

void Nothing(jpeg_decompress_struct*) {}

// The end of the file is reached. In a header that is an error. In image data libjpeg asks for bytes before
// it needs them, so a file without an end marker may still be complete: libjpeg gets the marker, and warns if
// data was missing.
boolean OnUsedUp(jpeg_decompress_struct* info) {
  JpegSession& session = SessionOf(info);
  if (session.in_header || session.ended) FailAtEnd(session);
  session.ended = true;
  session.source.next_input_byte = kEndMarker;
  session.source.bytes_in_buffer = sizeof kEndMarker;
  return TRUE;
}

void OnSkip(jpeg_decompress_struct* info, long bytes) {
  jpeg_source_mgr& source = *info->src;
  const size_t skipped = std::min(source.bytes_in_buffer, static_cast<size_t>(std::max(bytes, 0L)));
  source.next_input_byte += skipped;
  source.bytes_in_buffer -= skipped;
}

// APP1 in place of libjpeg's own, which would copy the segment.
boolean OnApp1(jpeg_decompress_struct* info) {
  JpegSession& session = SessionOf(info);
  jpeg_source_mgr& source = session.source;
  if (session.ended || source.bytes_in_buffer < 2) FailAtEnd(session);
  const size_t length = Big16(source.next_input_byte);
  if (length < 2) FailJpeg(session, "a segment's length is below 2");
  if (length > source.bytes_in_buffer) FailAtEnd(session);
  if (session.orientation == 0) {
    session.orientation = ExifOrientation({source.next_input_byte + 2, length - 2});
  }
  source.next_input_byte += length;
  source.bytes_in_buffer -= length;
  return TRUE;
}

void OnProgress(jpeg_common_struct* info) {
  JpegSession& session = SessionOf(info);
  if (session.most_scans > 0 && session.info.input_scan_number > session.most_scans) {
    session.code = JERR_OUT_OF_MEMORY;  // a limit of ours, like memory
    std::snprintf(session.message, sizeof session.message, "more than %d scans for %u x %u pixels",
                  session.most_scans, session.info.image_width, session.info.image_height);
    std::longjmp(session.escape, 1);
  }
}

bool IsUnsupported(int code) {
  switch (code) {
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_IMAGE_TOO_BIG:
    case JERR_NOT_COMPILED:
    case JERR_NO_BACKING_STORE:  // max_memory_to_use is reached
    case JERR_OUT_OF_MEMORY:
    case JERR_SOF_UNSUPPORTED:
      return true;
    default:
      return false;
  }
}

void Prepare(JpegSession& session, std::span<const uint8_t> bytes) {
  session.begin = bytes.data();
  session.end = bytes.data() + bytes.size();
  session.in_header = true;
  session.ended = session.out_of_data = false;
  session.most_scans = session.orientation = session.code = 0;
  session.message[0] = '\0';
  session.info.err = jpeg_std_error(&session.errors);
  session.errors.error_exit = LeaveLibrary;
  session.errors.emit_message = OnMessage;
  session.info.client_data = &session;
  session.source = {};
  session.source.next_input_byte = bytes.data();
  session.source.bytes_in_buffer = bytes.size();
  session.source.init_source = Nothing;
  session.source.fill_input_buffer = OnUsedUp;
  session.source.skip_input_data = OnSkip;
  session.source.resync_to_restart = jpeg_resync_to_restart;
  session.source.term_source = Nothing;
  session.progress = {};
  session.progress.progress_monitor = OnProgress;
}

}  // namespace

bool OpenJpeg(JpegSession& session, std::span<const uint8_t> bytes) {
  CloseJpeg(session);
  Prepare(session, bytes);
  return Guarded(session, [&session] {
    jpeg_create_decompress(&session.info);
    session.open = true;
    session.info.src = &session.source;
    session.info.progress = &session.progress;
    jpeg_set_marker_processor(&session.info, JPEG_APP0 + 1, OnApp1);
    (void)jpeg_read_header(&session.info, TRUE);
    session.in_header = false;
  });
}

void CloseJpeg(JpegSession& session) {
  if (session.open) jpeg_destroy_decompress(&session.info);
  session.open = false;
}

void FailJpeg(JpegSession& session, const char* message) {
  session.code = 0;
  std::snprintf(session.message, sizeof session.message, "%s", message);
  std::longjmp(session.escape, 1);
}

Error JpegError(const JpegSession& session) {
  const size_t size = static_cast<size_t>(session.end - session.begin);
  const bool at_end = session.ended || session.out_of_data;
  const size_t offset = at_end ? size : static_cast<size_t>(session.source.next_input_byte - session.begin);
  std::string_view what = session.message;
  for (const std::string_view prefix : {"Corrupt JPEG data: ", "Invalid JPEG file structure: "}) {
    if (what.starts_with(prefix)) what.remove_prefix(prefix.size());
  }
  if (IsUnsupported(session.code)) {
    return Unsupported(fmt::format("the JPEG is of an unsupported kind: {} (at byte {})", what, offset),
                       "convert it once to a baseline JPEG of 8 bits, for example: mogrify -format jpg FILE");
  }
  if (session.in_header && at_end) {
    return Corrupt(fmt::format("the JPEG ends at byte {}, before its image data", size));
  }
  if (session.in_header)
    return Corrupt(fmt::format("the JPEG's header is damaged at byte {}: {}", offset, what));
  const auto& info = session.info;
  if (at_end) {
    return Corrupt(fmt::format("the JPEG ends at byte {}, within its image data (row {} of {})", size,
                               info.output_scanline, info.output_height));
  }
  return Corrupt(fmt::format("the JPEG is damaged near byte {} (row {} of {}): {}", offset,
                             info.output_scanline, info.output_height, what));
}

}  // namespace fullbore::loader
