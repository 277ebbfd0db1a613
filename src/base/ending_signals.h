// The signals that ask a program to end: Ctrl-C, Ctrl-\, a polite kill, a terminal that goes away. Not those that whoever
// started it made it ignore: under nohup the end of a session does not end it.
#pragma once

#include <signal.h>

#include "base/fd.h"

namespace fullbore {

sigset_t EndingSignals();
bool AsksToEnd(int signal);

// Held back from this thread, from now on; readable instead, once one has come.
UniqueFd HeldEndingSignals();

}  // namespace fullbore
