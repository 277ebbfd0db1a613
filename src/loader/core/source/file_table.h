// Which file each sample is, for millions of samples: about 25 bytes each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::loader {

// Texts one after the other in one block of memory.
class TextColumn {
 public:
  void Add(std::string_view text) {
    text_.append(text);
    ends_.push_back(text_.size());
  }
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t index) const {
    const uint64_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(text_).substr(begin, ends_[index] - begin);
  }
  void Compact() {
    text_.shrink_to_fit();
    ends_.shrink_to_fit();
  }

 private:
  std::string text_;
  std::vector<uint64_t> ends_;
};

// Files by directory, in the order of the samples.
class FileTable {
 public:
  struct Directory {
    std::string path;
    int64_t label = 0;   // of all files in it, if directories are classes
    uint64_t first = 0;  // sample
  };

  void BeginDirectory(std::string path, int64_t label) {
    directories_.push_back({std::move(path), label, names_.size()});
  }
  void Add(std::string_view name) { names_.Add(name); }
  void Compact() { names_.Compact(); }

  uint64_t size() const { return names_.size(); }
  const Directory& DirectoryOf(uint64_t id) const;
  std::string_view NameOf(uint64_t id) const { return names_[id]; }
  void PathOf(uint64_t id, std::string& out) const;  // allocates nothing if `out` has room

 private:
  std::vector<Directory> directories_;
  TextColumn names_;
};

}  // namespace fullbore::loader
