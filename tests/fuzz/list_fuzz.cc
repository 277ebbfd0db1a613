// A list of files, in each syntax. Rows come with at least one cell, and lines count upwards.
#include <cstdlib>

#include "loader/core/source/list_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fullbore::loader::ListSyntax;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const ListSyntax syntax : {ListSyntax::kComma, ListSyntax::kTab, ListSyntax::kPathLabel}) {
    uint64_t last = 0;
    (void)fullbore::loader::ParseList(text, syntax, [&](uint64_t line, auto cells) -> fullbore::Result<void> {
      if (cells.empty() || line <= last) std::abort();
      last = line;
      return {};
    });
  }
  return 0;
}
