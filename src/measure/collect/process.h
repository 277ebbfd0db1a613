// Whether a process lives, by its number in /proc: of this machine and process namespace alone.
#pragma once

#include <cstdint>
#include <string>

namespace fullbore::collect {

bool IsAlive(int64_t pid);  // one that has ended and waits for its parent to notice is not

// When it began, in ticks since boot: a number may have been given to another process since. Empty where
// there is no such process.
std::string BeginOf(int64_t pid);

}  // namespace fullbore::collect
