// The paths that a client may name: what lies in the working directory, or where --allow-path says. A link that leads
// out, and "..", count as what they lead to. The path that is returned has neither, and is the one to use; who can
// exchange directories of ours while we work is not kept out.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace fullbore::mcp {

class AllowedPaths {
 public:
  // The working directory, and these. An error where one is no directory.
  static Result<AllowedPaths> Make(const std::vector<std::string>& more);

  // Where `path` leads; it need not exist. Of a directory, nothing in it may lead out either. kPermission where it may
  // not be named.
  Result<std::string> Resolve(const std::string& path) const;

 private:
  bool Holds(const std::string& resolved) const;

  std::vector<std::string> roots_;  // free of links
};

}  // namespace fullbore::mcp
