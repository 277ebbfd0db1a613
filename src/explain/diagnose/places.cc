#include "explain/diagnose/places.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace fullbore::diagnose {

namespace {

// What of the path is below the folder of installed packages, or of Python's own library; all of it where it is
// neither.
std::string_view BelowPackages(std::string_view file) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    if (const size_t at = file.rfind(folder); at != std::string_view::npos)
      return file.substr(at + folder.size());
  }
  for (const std::string_view folder : {"/lib/python3", "/lib64/python3"}) {
    const size_t at = file.rfind(folder);
    const size_t end = at == std::string_view::npos ? at : file.find('/', at + folder.size());
    if (end != std::string_view::npos) return file.substr(end + 1);
  }
  return file;
}

}  // namespace

std::string FileOrModule(const std::string& file) {
  const std::string_view below = BelowPackages(file);
  if (below.size() == file.size() || !below.ends_with(".py")) return file;
  std::string module(below.substr(0, below.size() - 3));
  constexpr std::string_view kPackage = "/__init__";
  if (module.ends_with(kPackage)) module.resize(module.size() - kPackage.size());
  std::ranges::replace(module, '/', '.');
  return module;
}

std::string NamesOf(const std::vector<Place>& places) {
  std::string names;
  std::string_view before;
  for (const Place& place : places) {
    const std::string_view file = place.file;
    if (!names.empty()) names += ", ";
    if (file != before) names += file.substr(file.rfind('/') + 1);
    names += ":" + std::to_string(place.line);
    before = file;
  }
  return names;
}

Place PlaceOf(const std::string& where) {
  Place place;
  const size_t colon = where.rfind(':');
  if (colon == std::string::npos) return place;
  place.file = where.substr(0, colon);
  place.line = static_cast<int>(ParseInt(std::string_view(where).substr(colon + 1)).value_or(0));
  return place;
}

bool IsPlaceToEdit(const std::string& file, const std::string& text) {
  const size_t slash = file.rfind('/');
  if (slash == std::string::npos || !file.substr(0, slash).ends_with("/bin")) return true;
  const bool has_extension = file.find('.', slash) != std::string::npos;
  return has_extension || !(text.empty() || text.starts_with("sys.exit("));
}

std::vector<Place> PlacesOf(const std::vector<record::HotLine>& lines,
                            const std::function<bool(const record::HotLine&)>& counts, double all) {
  std::vector<Place> places;
  for (const record::HotLine& line : lines) {
    if (!counts(line) || line.file.empty() || !IsPlaceToEdit(line.file, line.text)) continue;
    const std::string file = FileOrModule(line.file);
    const double part = static_cast<double>(line.samples) / std::max(1.0, all);
    const auto same = std::ranges::find_if(
        places, [&](const Place& place) { return place.file == file && place.line == line.line; });
    if (same != places.end())
      same->share += part;  // another activity at the same line
    else
      places.push_back({file, line.line, line.text, part});
  }
  std::ranges::stable_sort(places, std::greater(), &Place::share);
  return places;
}

}  // namespace fullbore::diagnose
