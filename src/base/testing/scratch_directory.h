// A directory that is removed after the test, and files in it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/temporary_directory.h"

namespace fullbore {

class ScratchDirectory {
 public:
  const std::string& path() const { return directory_.path(); }
  std::string operator/(std::string_view name) const { return path() + "/" + std::string(name); }

  // Creates missing directories; returns the path.
  std::string Write(std::string_view name, std::string_view bytes) const {
    const std::filesystem::path path = *this / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::Make().value();
};

}  // namespace fullbore
