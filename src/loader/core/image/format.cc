#include "loader/core/image/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "loader/core/image/pixels.h"

namespace fullbore::loader {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";
constexpr const char* kConvert = "convert it once, for example: mogrify -format png FILE";
constexpr const char* kNotAnImage = "remove it, or download it again";

struct Magic {
  size_t offset;
  std::string_view bytes;
  const char* name;
  const char* hint;
};
// The first match counts. Signatures of two or three bytes come last.
constexpr Magic kForeign[] = {
    {0, "GIF87a"sv, "a GIF", kConvert},
    {0, "GIF89a"sv, "a GIF", kConvert},
    {0, "II*\0"sv, "a TIFF", kConvert},
    {0, "MM\0*"sv, "a TIFF", kConvert},
    {0, "II+\0"sv, "a BigTIFF", kConvert},
    {0, "MM\0+"sv, "a BigTIFF", kConvert},
    {0, "II\xBC\x01"sv, "a JPEG XR", kConvert},
    {4, "ftypavif"sv, "an AVIF", kConvert},
    {4, "ftypavis"sv, "an animated AVIF", kConvert},
    {4, "ftyphei"sv, "a HEIC", kConvert},
    {4, "ftyphev"sv, "a HEIC", kConvert},
    {4, "ftypmif1"sv, "a HEIF", kConvert},
    {4, "ftyp"sv, "a video or other MP4-like file", kNotAnImage},
    {0, "\0\0\0\x0CjP  \r\n\x87\n"sv, "a JPEG 2000", kConvert},
    {0, "\xFF\x4F\xFF\x51"sv, "a JPEG 2000 codestream", kConvert},
    {0, "\0\0\0\x0CJXL \r\n\x87\n"sv, "a JPEG XL", kConvert},
    {0, "8BPS"sv, "a Photoshop file", kConvert},
    {0, "\0\0\x01\0"sv, "a Windows icon", kConvert},
    {0, "qoif"sv, "a QOI", kConvert},
    {0, "v/1\x01"sv, "an OpenEXR", kConvert},
    {0, "DDS "sv, "a DDS texture", kConvert},
    {0, "%PDF"sv, "a PDF", kNotAnImage},
    {0, "<!DOCTYPE"sv, "a web page", kNotAnImage},
    {0, "<!doctype"sv, "a web page", kNotAnImage},
    {0, "<html"sv, "a web page", kNotAnImage},
    {0, "<svg"sv, "an SVG", kConvert},
    {0, "<?xml"sv, "an XML or SVG file", kConvert},
    {8, "WAVE"sv, "a WAV sound", kNotAnImage},
    {8, "AVI "sv, "an AVI video", kNotAnImage},
    {0, "\x93NUMPY"sv, "a .npy array", "give it as a separate field, named *.npy"},
    {0, "PK\x03\x04"sv, "a ZIP archive", "unpack it"},
    {0, "\x1F\x8B\x08"sv, "gzip-compressed data", "unpack it"},
    {0, "P4\n"sv, "a PBM", kConvert},
    {0, "P5\n"sv, "a PGM", kConvert},
    {0, "P6\n"sv, "a PPM", kConvert},
    {0, "\xFF\x0A"sv, "a JPEG XL codestream", kConvert},
    {0, "BM"sv, "a BMP", kConvert},
};

std::string FirstBytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes.substr(0, 8)) text += fmt::format(" {:02x}", static_cast<uint8_t>(byte));
  const bool printable = std::all_of(
      bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(8, bytes.size())),
      [](char c) { return c >= ' ' && c <= '~'; });
  return printable ? fmt::format("{} ('{}')", text, bytes.substr(0, 8)) : text;
}

}  // namespace

Result<ImageFormat> RecogniseFormat(std::span<const uint8_t> encoded) {
  const std::string_view bytes(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  if (bytes.starts_with("\xFF\xD8\xFF"sv)) return ImageFormat::kJpeg;
  if (bytes.starts_with(kPngMagic)) return ImageFormat::kPng;
  if (bytes.size() >= 12 && bytes.starts_with("RIFF"sv) && bytes.substr(8, 4) == "WEBP"sv) {
    return ImageFormat::kWebp;
  }
  if (bytes.empty()) return Corrupt("the file is empty (0 bytes)");
  // Too short for any magic; the bytes may still be the beginning of one.
  if (bytes.size() < 12 && (kPngMagic.starts_with(bytes.substr(0, 8)) ||
                            "\xFF\xD8\xFF"sv.starts_with(bytes) || bytes.starts_with("RIFF"sv))) {
    return Corrupt(
        fmt::format("the file ends after {} bytes, within the first bytes of an image", bytes.size()));
  }
  if (bytes.starts_with(kPngMagic.substr(0, 4))) {
    return Corrupt(fmt::format("the first bytes of the PNG are damaged, as after a transfer in text mode:{}",
                               FirstBytes(bytes)));
  }
  for (const Magic& magic : kForeign) {
    if (bytes.size() >= magic.offset && bytes.substr(magic.offset).starts_with(magic.bytes)) {
      return Unsupported(fmt::format("{}, which is not supported: only JPEG, PNG and WebP are", magic.name),
                         magic.hint);
    }
  }
  return Corrupt(fmt::format("not an image: {} bytes that begin with{}", bytes.size(), FirstBytes(bytes)));
}

std::span<const uint8_t> WithoutUnwrittenTail(std::span<const uint8_t> encoded) {
  constexpr size_t kSectorBytes = 512;
  size_t size = encoded.size();
  while (size > 0 && encoded[size - 1] == 0) --size;
  return encoded.size() - size < kSectorBytes ? encoded : encoded.first(size);
}

}  // namespace fullbore::loader
