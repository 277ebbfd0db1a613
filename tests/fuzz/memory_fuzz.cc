// A memory snapshot: whatever its pickle holds, what is said of it adds up.
#include <cstdint>

#include "explain/memory/account.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto snapshot = fullbore::memory::ParseSnapshot({reinterpret_cast<const char*>(data), size});
  if (!snapshot) return 0;
  for (const auto& account : fullbore::memory::AccountsOf(*snapshot, {{2.0}})) {
    if (account.as_recorded)
      FB_CHECK(account.as_recorded->peak_reserved >= account.as_recorded->peak_allocated);
    for (const auto& each : account.what_if)
      FB_CHECK(each.replayed.peak_reserved >= each.replayed.peak_allocated);
    FB_CHECK(account.end.allocated <= account.end.reserved);
  }
  return 0;
}
