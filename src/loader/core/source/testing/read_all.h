// A sample's fields as texts, for comparing.
#pragma once

#include <string>
#include <vector>

#include "fullbore/loader/source.h"

namespace fullbore::loader::testing {

inline std::string TextOf(const SourceField& field, const FieldValue& value) {
  if (field.kind == SourceFieldKind::kInteger) return std::to_string(value.integer);
  return {reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()};
}

// Fields joined by '|'; "bad: ..." where the sample cannot be read.
inline std::string ReadText(const Source& source, uint64_t id) {
  static thread_local RawSample sample;  // filled again and again, as a loader's thread does
  if (auto read = source.Read(id, sample); !read) return "bad: " + read.error().text;
  std::string text;
  for (size_t i = 0; i < source.fields().size(); ++i)
    text += (i ? "|" : "") + TextOf(source.fields()[i], sample.fields[i]);
  return text;
}

inline std::vector<std::string> ReadAll(const Source& source) {
  std::vector<std::string> all;
  for (uint64_t id = 0; id < source.size(); ++id) all.push_back(ReadText(source, id));
  return all;
}

}  // namespace fullbore::loader::testing
