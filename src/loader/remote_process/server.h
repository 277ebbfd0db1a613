// The server side of a loader in a separate process: runs the
// engine with batches in shared memory and answers the client.
#pragma once

#include <functional>
#include <string>

#include "base/fd.h"
#include "fullbore/loader.h"

namespace fullbore::loader {

// Makes the user stage from ProcessOptions::user_stage; called in the server.
using StageFactory = std::function<Result<RowFunction>(const std::string& user_stage)>;

// Serves one client until it is gone: until it closes the socket or dies.
void ServeLoader(UniqueFd socket, const StageFactory& make_stage);

}  // namespace fullbore::loader
