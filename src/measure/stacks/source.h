// The source files of a process's own code, for what a line number alone does not say: which functions the line calls,
// and under which names the file imports them.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::stacks {

// Not for use by several threads. Each file is read once; one that cannot be read has no lines.
class Sources {
 public:
  // `root` is the file system as the process sees it, "/proc/PID/root", and `directory` its working directory there.
  Sources(std::string root, std::string directory)
      : root_(std::move(root)), directory_(std::move(directory)) {}

  std::string PathOf(const std::string& file) const;         // absolute, as the process names it
  std::string_view Line(const std::string& file, int line);  // trimmed; empty where it cannot be read

  // The functions that the line calls, in order, by their full names where the file imports them or they are
  // Python's own: "time.sleep", "builtins.print"; ".item" for a method of something else.
  std::vector<std::string> CallsIn(const std::string& file, int line);

  // Whether the class in whose body the line lies defines all of these methods itself.
  bool ClassHas(const std::string& file, int line, std::initializer_list<std::string_view> methods);

 private:
  struct File {
    std::string text;
    std::vector<std::string_view> lines;
    std::map<std::string, std::string, std::less<>> imports;  // "np" -> "numpy"
  };
  File& Read(const std::string& file);
  static void ReadImports(File& file);

  std::string root_, directory_;
  std::map<std::string, File> files_;
};

}  // namespace fullbore::stacks
