// The words of other tools: what people type who come from them, and what it is called here. Errors ask "did you mean
// ...?" with these; nothing is run in the place of what was typed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::cli {

// The command line that was probably meant by words of which the first is no subcommand: "fullbore run -- python
// train.py" for "python train.py", "fullbore explain trace.json" for "report trace.json". `command` stood after "--".
// Secrets in it are masked. Nothing where there is no guess.
std::optional<std::string> CommandLineMeant(const std::vector<std::string>& words,
                                            const std::vector<std::string>& command);

// "fullbore run -q -- python train.py" for "run -q python train.py", where "python" and what follows was left over.
// Nothing where no command begins among the words that were left over.
std::optional<std::string> WithSeparator(const std::vector<std::string>& words,
                                         const std::vector<std::string>& left_over);

// The setting of `measure` and `tune` that another tool calls so: "batch_size" for "per_device_train_batch_size".
std::optional<std::string> SettingOfPeers(std::string_view name);

// The change of --what-if that another tool calls so: "precision" for "amp".
std::optional<std::string> ChangeOfPeers(std::string_view name);

}  // namespace fullbore::cli
