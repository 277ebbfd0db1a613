// Runs this program once more beside a training, so that it harms nobody: at low priority, with bounded memory, first to
// end where memory ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fullbore::watch {

// The words begin with the path of the program; its standard output is `output`, its input and errors are nothing. In
// a session of its own it ends neither with Ctrl-C nor with us, else it does. What starts programs that reserve more
// address space than they use (Go's do) gets no bound on it. -1 if it cannot be started.
enum class HelperMemory { kBounded, kUnbounded };
pid_t StartHelper(std::vector<std::string> words, int output, bool own_session,
                  HelperMemory memory = HelperMemory::kBounded);

}  // namespace fullbore::watch
