// What a command reads, to know it again under any name: by device and inode, through links, and in a directory that is
// given as a whole. Looked at anew each time: an editor replaces a script while it trains.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

namespace fullbore {

class InputFiles {
 public:
  // A file, or a directory with what is in it. What does not exist holds nothing.
  void Add(const std::string& path);

  // The program of a command, and the files among its words: `train.py`, `--config=a.yaml`, `sh -c 'cat list | train'`,
  // `-m package.train`. Directories among them are left out: the command may as well write there.
  void AddCommand(const std::vector<std::string>& command);

  // The name under which this file was given.
  std::optional<std::string> NameOf(const struct stat& file) const;

  // The directory that was given and holds this file, which has been found at `path`, without links. Looks through
  // kMostEntries of it for another name or a link, where the path does not tell.
  std::optional<std::string> DirectoryWith(const std::string& path, const struct stat& file) const;

 private:
  static constexpr int kMostEntries = 100'000;

  std::vector<std::string> paths_;     // files, and directories with their contents
  std::vector<std::string> of_words_;  // files only
};

}  // namespace fullbore
