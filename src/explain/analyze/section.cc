#include "explain/analyze/section.h"

#include <algorithm>

namespace fullbore::analyze {

const std::vector<const Section*>& AllSections() {
  static const std::vector<const Section*> all = {
#define SECTION(section) &section,
#include "explain/analyze/sections.inc"
#undef SECTION
  };
  return all;
}

const Section* SectionNamed(std::string_view name) {
  const auto& all = AllSections();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Section* section) { return section->name == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace fullbore::analyze
