// The signals that ask a program to end: Ctrl-C, Ctrl-\, a polite kill, a terminal that goes away. Not those that whoever
// started it made it ignore: under nohup the end of a session does not end it.
#pragma once

#include <signal.h>

namespace fullbore {

sigset_t EndingSignals();
bool AsksToEnd(int signal);

}  // namespace fullbore
