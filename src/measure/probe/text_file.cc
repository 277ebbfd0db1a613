#include "measure/probe/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/text.h"

namespace fullbore::probe {

namespace {

constexpr size_t kFirstBufferBytes = 4096;
constexpr std::string_view kBlanks = " \t\r\n";

std::optional<uint64_t> ParseCount(std::string_view word) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || word.empty()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string_view> TextFile::Fail(int error_number) {
  error_number_ = error_number;
  fd_.reset();
  return std::nullopt;
}

std::optional<std::string_view> TextFile::Read() {
  if (!fd_.valid()) fd_.reset(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_.valid()) return Fail(errno);
  if (buffer_.empty()) buffer_.resize(kFirstBufferBytes);
  size_t size = 0;
  while (true) {
    const ssize_t n =
        pread(fd_.get(), buffer_.data() + size, buffer_.size() - size, static_cast<off_t>(size));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(errno);
    if (n == 0) return std::string_view(buffer_).substr(0, size);
    size += static_cast<size_t>(n);
    if (size == buffer_.size()) buffer_.resize(2 * size);
  }
}

bool LineCursor::Next(std::string_view& line) {
  if (rest_.empty()) return false;
  const size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  return true;
}

std::string_view WordCursor::Next() {
  const size_t begin = rest_.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) {
    rest_ = {};
    return {};
  }
  size_t end = begin;
  while (end < rest_.size() && kBlanks.find(rest_[end]) == std::string_view::npos) ++end;
  const std::string_view word = rest_.substr(begin, end - begin);
  rest_.remove_prefix(end);
  return word;
}

std::optional<uint64_t> WordCursor::NextCount() { return ParseCount(Next()); }

void WordCursor::Skip(int words) {
  for (int i = 0; i < words; ++i) Next();
}

std::optional<uint64_t> ReadCount(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  if (!text) return std::nullopt;
  return ParseCount(Trim(*text));
}

std::optional<uint64_t> CountAfter(std::string_view text, std::string_view key) {
  LineCursor lines(text);
  for (std::string_view line; lines.Next(line);) {
    WordCursor words(line);
    if (words.Next() == key) return words.NextCount();
  }
  return std::nullopt;
}

}  // namespace fullbore::probe
