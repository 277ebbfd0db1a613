// Runs this program once more beside a training, so that it harms nobody: at low priority, with bounded memory, first to
// end where memory ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fullbore::watch {

// The words begin with the path of the program; its standard output is `output`, its input and errors are nothing. In
// a session of its own it ends neither with Ctrl-C nor with us, else it does. -1 if it cannot be started.
pid_t StartHelper(std::vector<std::string> words, int output, bool own_session);

}  // namespace fullbore::watch
