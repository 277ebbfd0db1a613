// A comparison of recordings as one HTML file, as the report on one of them is (html.h).
#pragma once

#include <string>

#include "report/compared.h"

namespace fullbore::report {

std::string ToHtml(const Compared& compared);

}  // namespace fullbore::report
