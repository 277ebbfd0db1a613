// One command on two commits. A trial has a view of the file system of its own (trial_places.h), in which git checks
// the commit out where the working tree is: paths, an environment in the tree and installed links to it lead to that
// commit, data that git does not know is there, and the working tree and its repository stay as they are.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace fullbore::tune {

class Repository {
 public:
  // That of the working directory. An error outside one, and where there is no git.
  static Result<Repository> Find();

  // The full name of a commit, so that a branch may move on meanwhile. An error for what names none.
  Result<std::string> CommitNamed(const std::string& name) const;
  // The command, after the commit was checked out in the trial's view.
  std::vector<std::string> CommandAt(const std::string& commit,
                                     const std::vector<std::string>& command) const;
  // What the files that git knows are now: the commit, and what was changed since. Two that are equal are the same.
  Result<std::string> State() const;
  bool IsClean(const std::string& state) const { return state.find('\n') == std::string::npos; }
  static std::string CommitOf(const std::string& state) { return state.substr(0, state.find('\n')); }

 private:
  Repository(std::string tree, std::string files) : tree_(std::move(tree)), files_(std::move(files)) {}

  std::string tree_, files_;  // the working tree, and git's own files; absolute
};

}  // namespace fullbore::tune
