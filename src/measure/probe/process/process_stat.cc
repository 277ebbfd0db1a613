#include "measure/probe/process/process_stat.h"

#include "base/fd.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/utf8.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

namespace {

constexpr size_t kMaxCommandBytes = 200;
constexpr size_t kMaxSearchedBytes = 4096;  // for secrets: masking makes room for what follows

}  // namespace

std::optional<ProcessStat> ParseProcessStat(std::string_view text) {
  // "4242 (python3) S 4200 ...": the name may itself hold blanks and brackets.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  ProcessStat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  WordCursor words(text.substr(close + 1));
  const std::string_view state = words.Next();
  if (state.size() != 1) return std::nullopt;
  stat.state = state[0];
  const auto parent = words.NextCount();
  words.Skip(9);  // up to and with cmajflt
  const auto user = words.NextCount();
  const auto system = words.NextCount();
  words.Skip(4);  // cutime, cstime, priority, nice
  const auto threads = words.NextCount();
  words.Skip(1);
  const auto start = words.NextCount();
  words.Skip(1);  // vsize
  const auto resident = words.NextCount();
  if (!parent || !user || !system || !threads || !start || !resident) return std::nullopt;
  stat.parent_pid = static_cast<int64_t>(*parent);
  stat.cpu_ticks = *user + *system;
  stat.threads = static_cast<int64_t>(*threads);
  stat.start_ticks = *start;
  stat.resident_pages = *resident;
  return stat;
}

std::string ReadCommandLine(const std::string& process_directory) {
  Result<std::string> text = ReadFile(process_directory + "/cmdline");
  if (!text) return "";
  text->resize(std::min(text->size(), kMaxSearchedBytes));
  if (text->ends_with('\0')) text->pop_back();  // each word ends in one
  std::vector<std::string> words;
  for (const std::string_view word : Split(*text, '\0')) words.emplace_back(word);
  std::string command;
  for (const std::string& word : MaskSecrets(std::move(words)))
    command += (command.empty() ? "" : " ") + word;
  for (char& c : command) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';  // line breaks come in `python -c`
  }
  return std::string(Trim(Utf8Front(command, kMaxCommandBytes)));
}

}  // namespace fullbore::probe
