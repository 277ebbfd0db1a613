#include "explain/diagnose/refused_memory.h"

#include <algorithm>

#include "base/text.h"

namespace fullbore::diagnose {

namespace {

constexpr char kSource[] = "device-memory";

// "1.50 GiB"
std::optional<double> BytesOf(std::string_view number, std::string_view unit) {
  const auto value = ParseDouble(number);
  if (!value) return std::nullopt;
  const double times = unit.starts_with("bytes") ? 1
                       : unit.starts_with("KiB") ? 0x1p10
                       : unit.starts_with("MiB") ? 0x1p20
                       : unit.starts_with("GiB") ? 0x1p30
                                                 : 0;
  return times > 0 ? std::optional(*value * times) : std::nullopt;
}

std::optional<double> SizeAfter(std::string_view text, std::string_view mark) {
  const size_t found = text.find(mark);
  if (found == std::string_view::npos) return std::nullopt;
  const auto words = Words(text.substr(found + mark.size(), 40));
  return words.size() < 2 ? std::nullopt : BytesOf(words[0], words[1]);
}

std::optional<double> SizeBefore(std::string_view text, std::string_view mark) {
  const auto words = Words(text.substr(0, text.find(mark)));
  if (words.size() < 2 || text.find(mark) == std::string_view::npos) return std::nullopt;
  return BytesOf(words[words.size() - 2], words.back());
}

}  // namespace

RefusedMemory ParseRefusedMemory(std::string_view said) {
  RefusedMemory refused;
  const size_t of_torch = said.find(" out of memory.");
  const size_t colon = said.find(": ");
  if (colon != std::string_view::npos && colon < of_torch) refused.place = said.substr(0, colon);
  refused.asked = SizeAfter(said, "Tried to allocate ");
  refused.capacity = SizeAfter(said, "total capacity of ");
  if (!refused.capacity) refused.capacity = SizeBefore(said, " total capacity");  // before PyTorch 2.1
  refused.free = SizeAfter(said, " of which ");
  if (!refused.free) refused.free = SizeBefore(said, " free");
  refused.allocated = SizeAfter(said, "Of the allocated memory ");
  refused.unallocated = SizeBefore(said, " is reserved by PyTorch but unallocated");
  return refused;
}

std::optional<RefusedMemory> RefusedMemoryOf(const record::Stage& stage) {
  const auto found = std::ranges::find(stage.messages, kSource, &record::Message::source);
  if (found == stage.messages.end()) return std::nullopt;
  return ParseRefusedMemory(found->text);
}

}  // namespace fullbore::diagnose
