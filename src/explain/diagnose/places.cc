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

// "cell 4" of "<cell 4>"; empty for what is no cell of a notebook.
std::string_view CellOf(std::string_view file) {
  return file.starts_with("<cell ") && file.ends_with('>') ? file.substr(1, file.size() - 2) : "";
}

std::string LineOf(const Place& place) {
  return (CellOf(place.file).empty() ? ":" : "line ") + std::to_string(place.line);
}

}  // namespace

std::string NameOf(const Place& place) {
  if (const std::string_view cell = CellOf(place.file); !cell.empty())
    return std::string(cell) + ", " + LineOf(place);
  return place.file.substr(place.file.rfind('/') + 1) + LineOf(place);
}

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
    if (!names.empty()) names += ", ";
    names += place.file == before ? LineOf(place) : NameOf(place);
    before = place.file;
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
