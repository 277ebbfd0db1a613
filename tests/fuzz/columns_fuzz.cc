// A block of columns of a run file. What decodes is encoded and decoded again, and must come back the same.
#include <cstdint>
#include <cstdlib>

#include "record/columns.h"

namespace {

using fullbore::record::Column;

bool Same(const Column& a, const Column& b) {
  if (a.values.size() != b.values.size() || a.present != b.present) return false;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if ((a.present.empty() || a.present[i]) && a.values[i] != b.values[i]) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto columns =
      fullbore::record::DecodeColumns(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!columns) return 0;
  const auto again = fullbore::record::DecodeColumns(fullbore::record::EncodeColumns(*columns));
  if (!again || again->size() != columns->size()) abort();
  for (size_t i = 0; i < columns->size(); ++i) {
    if (!Same((*columns)[i], (*again)[i])) abort();
  }
  return 0;
}
