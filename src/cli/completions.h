// What may come next on a command line of ours, for the completion of shells. It is read off the same table of
// subcommands and options as --help; the scripts in completion/ only ask:
//
//   $ fullbore __complete explain --section ker
//   kernels<TAB>every kernel and copy by name: count, sum, ...
//   kernel-types<TAB>...
//
// A line is a candidate, a tab, and what it is; `:files` or `:directories` says that such a name may stand there, too,
// which the shell knows best. Asked at each press of a key: nothing is read but names of files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace fullbore::cli {

inline constexpr std::string_view kCompleteCall = "__complete";

struct Candidate {
  std::string word, what;
};

enum class Paths : uint8_t { kNone, kFiles, kDirectories };

struct Completions {
  std::vector<Candidate>
      candidates;  // each begins with the word that is being typed, or is the only run that holds it
  Paths paths = Paths::kNone;
};

// `words` is what stands behind "fullbore"; the last of them, perhaps empty, is being typed.
Completions CompletionsOf(const CLI::App& app, const std::vector<std::string>& words);

int PrintCompletions(const CLI::App& app, const std::vector<std::string>& words);  // the exit status

}  // namespace fullbore::cli
