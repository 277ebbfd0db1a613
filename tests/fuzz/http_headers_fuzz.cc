// A response's header, line by line, as libcurl delivers it.
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/text.h"
#include "loader/core/source/remote/http_headers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace remote = fullbore::loader::remote;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  remote::ResponseHeaders headers;
  for (const auto line : fullbore::Split(text, '\n')) headers.Take(line, 1'700'000'000);
  if (headers.content_range && headers.content_range->has_range) {
    FB_CHECK(headers.content_range->first <= headers.content_range->last);
  }
  if (headers.retry_after_s) FB_CHECK(*headers.retry_after_s >= 0);
  FB_CHECK(!remote::VersionsDiffer(headers.version(), headers.version()));
  (void)remote::IfMatchValue(headers.version());
  return 0;
}
