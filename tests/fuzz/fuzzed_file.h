// Input as a file, for readers that take a path. In memory where the system has /dev/shm.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace fullbore::fuzz {

class FuzzedFile {
 public:
  explicit FuzzedFile(const std::string& suffix) {
    const std::filesystem::path shm = "/dev/shm";
    std::error_code none;
    const auto folder =
        std::filesystem::is_directory(shm, none) ? shm : std::filesystem::temp_directory_path();
    path_ = folder / ("fullbore-fuzz-" + std::to_string(getpid()) + suffix);
  }
  ~FuzzedFile() { std::remove(path_.c_str()); }
  FuzzedFile(const FuzzedFile&) = delete;
  FuzzedFile& operator=(const FuzzedFile&) = delete;

  const std::string& Write(const uint8_t* data, size_t size) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    return path_;
  }

 private:
  std::string path_;
};

}  // namespace fullbore::fuzz
