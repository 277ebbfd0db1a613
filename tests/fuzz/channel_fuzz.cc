// A channel's ring and, after it in the input, its text: the first two bytes give the text's length.
#include <cstdlib>

#include "fuzzed_file.h"
#include "measure/collect/channel_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fullbore::fuzz::FuzzedFile ring(".ring");
  static const fullbore::fuzz::FuzzedFile text(".jsonl");
  if (size < 2) return 0;
  const size_t text_bytes = std::min<size_t>(data[0] | data[1] << 8, size - 2);
  text.Write(data + size - text_bytes, text_bytes);
  auto channel = fullbore::collect::Channel::Open(ring.Write(data + 2, size - 2 - text_bytes));
  if (!channel) return 0;
  // Nobody writes, so no event can be new twice.
  if ((*channel)->ReadEvents().size() > (*channel)->header().capacity) abort();
  (void)(*channel)->ReadEvents();
  (void)(*channel)->ReadLines();
  return 0;
}
