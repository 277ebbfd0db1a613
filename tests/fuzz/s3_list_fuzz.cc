// A page of a listing, and an error, as an S3 server might send them.
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "loader/core/source/remote/s3_xml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto page = fullbore::loader::remote::ParseS3ListPage(text);
  if (page) {
    size_t bytes = page->next_token.size();
    for (const auto& object : page->objects) bytes += object.key.size() + object.etag.size();
    // No entity is shorter than what it stands for, so nothing grows.
    FB_CHECK(bytes <= size);
  }
  (void)fullbore::loader::remote::ParseS3Error(text);
  return 0;
}
