// The server on two descriptors, until the client closes its end or a signal asks us to end: then what runs is ended in
// an orderly way first.
#pragma once

#include "mcp/server.h"

namespace fullbore::mcp {

// Owns neither descriptor. `signals` becomes readable when we are asked to end.
void Serve(ServerOptions options, Starter& starter, int input, int output, int signals);

}  // namespace fullbore::mcp
