#include "mcp/bounded.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace fullbore::mcp {

namespace {

constexpr size_t kSmall = 256;   // is always worth its room
constexpr size_t kWorth = 1024;  // with less room, a part says nothing

size_t SizeOf(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace).size(); }

Json NameOf(const std::string& name, size_t bytes) { return {{"resource", name}, {"bytes", bytes}}; }

// A member's name may hold a slash: as JSON pointers write it, which other programs have at hand.
std::string Escaped(std::string_view key) {
  std::string text;
  for (const char c : key) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

std::string Unescaped(std::string_view part) {
  std::string text;
  for (size_t i = 0; i < part.size(); ++i) {
    const std::string_view two = part.substr(i, 2);
    if (two != "~0" && two != "~1") {
      text += part[i];
      continue;
    }
    text += two == "~0" ? '~' : '/';
    ++i;
  }
  return text;
}

Json BoundedObject(const Json& object, const std::string& name, size_t room) {
  Json kept = Json::object();
  size_t left = room;
  for (const auto& [key, value] : object.items()) {
    const std::string path = name + "/" + Escaped(key);
    const size_t bytes = SizeOf(value);
    if (bytes <= std::max(kSmall, left / 2))
      kept[key] = value;
    else
      kept[key] =
          left > kWorth && value.is_structured() ? Bounded(value, path, left / 2) : NameOf(path, bytes);
    left -= std::min(left, SizeOf(kept[key]));
    if (left == 0 && kept.size() < object.size()) {
      kept["left_out"] = NameOf(name, SizeOf(object));
      break;
    }
  }
  return kept;
}

Json BoundedArray(const Json& array, const std::string& name, size_t room) {
  Json kept = Json::array();
  size_t left = room;
  for (size_t i = 0; i < array.size(); ++i) {
    const size_t bytes = SizeOf(array[i]);
    if (bytes > left && (i > 0 || !array[i].is_structured())) {
      kept.push_back({{"resource", fmt::format("{}/{}-", name, i)}, {"left_out", array.size() - i}});
      break;
    }
    kept.push_back(bytes <= left ? array[i] : Bounded(array[i], fmt::format("{}/{}", name, i), left));
    left -= std::min(left, bytes);
  }
  return kept;
}

// A place in a value: nothing is copied on the way there, however long the path is.
struct Spot {
  const Json* value;
  size_t from = 0;  // of a list: without the entries before
};

std::optional<Spot> EntryOf(const Spot& list, std::string_view part) {
  const bool rest = part.ends_with('-');
  const auto number = ParseInt(rest ? part.substr(0, part.size() - 1) : part);
  if (!number || *number < 0 || static_cast<size_t>(*number) >= list.value->size() - list.from)
    return std::nullopt;
  const size_t at = list.from + static_cast<size_t>(*number);
  return rest ? Spot{list.value, at} : Spot{&(*list.value)[at]};
}

std::optional<Spot> MemberOf(const Json& object, std::string_view part) {
  const auto member = object.is_object() ? object.find(Unescaped(part)) : object.end();
  return member == object.end() ? std::nullopt : std::optional(Spot{&*member});
}

Json ValueAt(const Spot& spot) {
  if (spot.from == 0) return *spot.value;
  return Json(spot.value->begin() + static_cast<std::ptrdiff_t>(spot.from), spot.value->end());
}

bool IsInside(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

}  // namespace

Json Bounded(const Json& value, const std::string& name, size_t room) {
  const size_t bytes = SizeOf(value);
  if (bytes <= room) return value;
  if (value.is_object()) return BoundedObject(value, name, room);
  if (value.is_array()) return BoundedArray(value, name, room);
  return value.is_string() ? Json(HeadOf(value.get_ref<const std::string&>(), room)) : value;
}

std::optional<Json> At(const Json& value, std::string_view path) {
  std::optional<Spot> spot = Spot{&value};
  while (spot && !path.empty()) {
    path.remove_prefix(1);
    const std::string_view part = path.substr(0, path.find('/'));
    spot = spot->value->is_array() ? EntryOf(*spot, part) : MemberOf(*spot->value, part);
    path.remove_prefix(part.size());
  }
  return spot ? std::optional(ValueAt(*spot)) : std::nullopt;
}

std::string HeadOf(std::string_view text, size_t bytes) {
  size_t end = std::min(bytes, text.size());
  while (end > 0 && IsInside(text, end)) --end;
  return std::string(text.substr(0, end));
}

std::string TailOf(std::string_view text, size_t bytes) {
  size_t begin = text.size() - std::min(bytes, text.size());
  while (IsInside(text, begin)) ++begin;
  return std::string(text.substr(begin));
}

}  // namespace fullbore::mcp
