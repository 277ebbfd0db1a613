#include "report/palette.h"

namespace fullbore::report {

const ShareLook& LookOf(std::string_view share_name) {
  const ShareLook* other = nullptr;
  for (const ShareLook& look : kShareLooks) {
    if (look.name == share_name) return look;
    if (look.name == "host_other") other = &look;
  }
  return *other;
}

}  // namespace fullbore::report
