#include "tune/proof/commit.h"

#include <fmt/format.h>

#include "base/captured.h"
#include "base/clock.h"
#include "base/text.h"

namespace fullbore::tune {

namespace {

constexpr int64_t kPatienceNs = 60 * kNsPerSecond;
// Without what the repository does after a checkout.
constexpr const char* kCheckOutAndRun =
    "git -c core.hooksPath=/dev/null \"$1\" \"$2\" checkout --quiet --force --detach \"$3\" && shift 3 && "
    "exec \"$@\"";
// Whether a line of `git diff --raw` (":100644 160000 ...": the modes before and after) is about one.
bool IsSubmodule(std::string_view line) {
  constexpr std::string_view kMode = "160000";
  return line.size() > 14 && (line.substr(1, 6) == kMode || line.substr(8, 6) == kMode);
}

// What git prints, without the last end of line. `what` is what could not be done.
Result<std::string> Git(const std::vector<std::string>& arguments, const std::string& what) {
  std::vector<std::string> words = {"git", "--no-optional-locks"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto done = RunAndCapture(words, kPatienceNs);
  if (!done) return done.error();
  if (done->status == 0) return std::string(Trim(done->output));  // its warnings are no part of that
  const std::string said(Trim(done->both()));
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", what, said.substr(0, said.find('\n'))), ""};
}

}  // namespace

Result<Repository> Repository::Find() {
  const auto tree = Git({"rev-parse", "--show-toplevel"}, "this directory is not in a working tree of git");
  const auto files = tree ? Git({"rev-parse", "--absolute-git-dir"}, "git does not find its files") : tree;
  if (files) return Repository(*tree, *files);
  Error error = files.error();
  error.hint =
      "--at compares two commits of a repository; without one, give two commands: --baseline, --candidate";
  return error;
}

Result<std::string> Repository::CommitNamed(const std::string& name) const {
  const Error no_commit = {ErrorCode::kInvalidArgument,
                           fmt::format("--at '{}' is not a commit of '{}'", name, tree_),
                           "a branch, a tag, HEAD~1 or the beginning of a commit's name"};
  if (name.empty() || name[0] == '-') return no_commit;
  auto commit = Git({"rev-parse", "--verify", "--quiet", name + "^{commit}"}, "");
  if (!commit) return no_commit;
  const auto differs =
      Git({"-C", tree_, "diff", "--raw", "--no-abbrev", "--ignore-submodules=dirty", *commit},
          "git does not say what differs");
  if (!differs) return differs;
  for (const std::string_view line : Split(*differs, '\n')) {
    if (!IsSubmodule(line)) continue;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("--at '{}' has other submodules than the working tree", name),
        "check it out with them in another directory, and give two commands: --baseline 'cd THERE && ...'"};
  }
  return commit;
}

std::vector<std::string> Repository::CommandAt(const std::string& commit,
                                               const std::vector<std::string>& command) const {
  // Both directories are named, for the view to reach them.
  std::vector<std::string> words = {
      "/bin/sh", "-c", kCheckOutAndRun, "fullbore", "--git-dir=" + files_, "--work-tree=" + tree_, commit};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Result<std::string> Repository::State() const {
  auto commit = Git({"rev-parse", "HEAD"}, "git does not say where the working tree stands");
  if (!commit) return commit;
  const auto changes =
      Git({"-C", tree_, "diff", "--no-ext-diff", "--no-textconv", "--binary", "--full-index", "HEAD"},
          "git does not say what was changed in the working tree");
  if (!changes) return changes;
  return changes->empty() ? *commit : *commit + "\n" + *changes;
}

}  // namespace fullbore::tune
