#include "base/command_line.h"

#include <cctype>
#include <optional>

#include "base/text.h"

namespace fullbore {

namespace {

constexpr std::string_view kForAShell = "|&;<>()$`*?[!\n";  // outside quotes
constexpr std::string_view kForAShellInQuotes = "$`";       // in double ones
constexpr std::string_view kForAShellAtFirst = "~#";        // of a word

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  // False where a quote is not closed.
  bool Split();
  bool needs_shell() const { return needs_shell_; }
  std::vector<std::string>& words() { return words_; }

 private:
  bool IsContinued();
  bool Quoted();  // the text from its opening quote on
  std::string& word() {
    if (!word_) word_.emplace();
    return *word_;
  }
  void EndWord() {
    if (word_) words_.push_back(std::move(*word_));
    word_.reset();
  }

  std::string_view text_;
  size_t at_ = 0;
  std::optional<std::string> word_;  // '' is one, too
  std::vector<std::string> words_;
  bool needs_shell_ = false;
};

// A backslash at the end of a line joins it with the next; goes on to the end of the line.
bool Splitter::IsContinued() {
  const bool is_continued = text_.substr(at_, 2) == "\\\n";
  if (is_continued) ++at_;
  return is_continued;
}

bool Splitter::Quoted() {
  const char quote = text_[at_++];
  word();
  for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
    const bool is_double = quote == '"';
    if (is_double && kForAShellInQuotes.find(text_[at_]) != std::string_view::npos) needs_shell_ = true;
    if (is_double && IsContinued()) continue;
    const bool escapes = is_double && text_[at_] == '\\' && at_ + 1 < text_.size() &&
                         std::string_view("$`\"\\").find(text_[at_ + 1]) != std::string_view::npos;
    if (escapes) ++at_;
    word() += text_[at_];
  }
  return at_++ < text_.size();
}

bool Splitter::Split() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\'' || c == '"') {
      if (!Quoted()) return false;
      continue;
    }
    if (IsContinued()) {
      ++at_;
      continue;
    }
    ++at_;
    if (c == ' ' || c == '\t') {
      EndWord();
      continue;
    }
    if (kForAShell.find(c) != std::string_view::npos) needs_shell_ = true;
    if (!word_ && kForAShellAtFirst.find(c) != std::string_view::npos) needs_shell_ = true;
    const bool escapes = c == '\\' && at_ < text_.size();
    word() += escapes ? text_[at_++] : c;
  }
  EndWord();
  return true;
}

bool SetsVariable(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos || std::isdigit(static_cast<unsigned char>(word[0])))
    return false;
  for (const unsigned char c : word.substr(0, equals)) {
    if (std::isalnum(c) == 0 && c != '_') return false;
  }
  return true;
}

}  // namespace

Result<std::vector<std::string>> WordsOfCommand(std::string_view text) {
  Splitter splitter(text);
  if (!splitter.Split()) return Error{ErrorCode::kInvalidArgument, "a quote is not closed", ""};
  std::vector<std::string>& words = splitter.words();
  if (words.empty()) return Error{ErrorCode::kInvalidArgument, "no command", ""};
  if (splitter.needs_shell()) return std::vector<std::string>{"/bin/sh", "-c", std::string(text)};
  if (SetsVariable(words.front())) words.insert(words.begin(), "env");
  return std::move(words);
}

std::string ShellLine(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellQuote(word);
  return line;
}

}  // namespace fullbore
