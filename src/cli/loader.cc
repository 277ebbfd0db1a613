#include "cli/parts.h"

namespace fullbore::cli {

namespace {

// A new one is a file loader_NAME.cc, a line in subcommand.h and one here.
Handler Define(CLI::App& app, const Invocation& invocation) {
  return DefineParts(app, invocation, {&kLoaderBench, &kLoaderPack});
}

}  // namespace

const Subcommand kLoader = {"loader", "Work on the data that the loader reads: measure it, pack it",
                            "fullbore loader pack photos/train packed", Define};

}  // namespace fullbore::cli
