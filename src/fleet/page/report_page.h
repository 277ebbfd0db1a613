// A report on many runs as one HTML file; and the letter to one person, with nothing about others. As the report on one
// run, it needs no network, and texts reach it only as text nodes.
#pragma once

#include <string>

#include "fleet/report.h"

namespace fullbore::fleet {

struct PageOf {
  std::string user;  // of a letter: whom it is for, whose runs alone the report has; else empty
  double price = 0;  // of a device hour; 0: none is shown
};

std::string ToHtml(const Report& report, const PageOf& of);

}  // namespace fullbore::fleet
