// What kind of field some bytes are, by the extension of a name or by the bytes themselves.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/loader/source.h"

namespace fullbore::loader {

// By the last part of an extension ("seg.png": an image): images, "cls" and similar (integers), json and txt
// (text), npy; the rest are bytes. WebDataset's own decoders use the same rules.
SourceFieldKind KindOfExtension(std::string_view extension);

// JPEG, PNG, WebP, npy by their first bytes; UTF-8 text; else bytes.
SourceFieldKind KindOfContent(std::span<const uint8_t> bytes);

// Text fields must be valid UTF-8.
bool IsText(std::span<const uint8_t> bytes);

// One entry of SourceOptions::fields: "jpg;png;webp" is the
// first of these that a sample has, and its name is "jpg".
struct WantedField {
  std::string name;
  std::vector<std::string> alternatives;
};
Result<std::vector<WantedField>> ParseWantedFields(const std::vector<std::string>& fields);

// If the first sample has an image as `extension`, others may have theirs as any of these.
std::vector<std::string> ImageAlternatives(std::string_view extension);

}  // namespace fullbore::loader
