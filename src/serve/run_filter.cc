#include "serve/run_filter.h"

#include <algorithm>
#include <cctype>

#include "base/command_line.h"
#include "base/text.h"

namespace fullbore::serve {

namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool Has(std::string_view text, const std::string& part) {
  return Lower(text).find(part) != std::string::npos;
}

// "lr=3e-4" is that tag with that value, "lr" that tag with any.
bool HasTag(const watch::KnownRun& run, const std::string& wanted) {
  const size_t equals = wanted.find('=');
  return std::ranges::any_of(run.summary.tags, [&](const auto& tag) {
    return Lower(tag.first) == wanted.substr(0, equals) &&
           (equals == std::string::npos || Lower(tag.second) == wanted.substr(equals + 1));
  });
}

constexpr const char* kFields[] = {"state", "finding", "tag", "command", "run", "note"};

}  // namespace

std::string_view Name(watch::RunState state) {
  constexpr std::string_view kNames[] = {"running", "cut off", "ended"};
  return kNames[static_cast<size_t>(state)];
}

std::string CommandOf(const watch::KnownRun& run) { return ShellLine(run.summary.stages.back().command); }

Result<RunFilter> RunFilter::Parse(const std::string& text) {
  RunFilter filter;
  for (std::string_view typed : Words(text)) {
    Word word;
    word.not_this = typed.size() > 1 && typed[0] == '-';
    if (word.not_this) typed.remove_prefix(1);
    const size_t colon = typed.find(':');
    if (colon != std::string_view::npos) word.field = Lower(typed.substr(0, colon));
    if (colon != std::string_view::npos && std::ranges::find(kFields, word.field) == std::end(kFields)) {
      return Error{ErrorCode::kInvalidArgument, "runs cannot be filtered by '" + word.field + "'",
                   "state:running finding:input-bound tag:lr=3e-4 command:train.py run:NAME note:WORD"};
    }
    word.value = Lower(colon == std::string_view::npos ? typed : typed.substr(colon + 1));
    filter.words_.push_back(std::move(word));
  }
  return filter;
}

bool RunFilter::Holds(const Word& word, const std::string& name, const watch::KnownRun& run) {
  const watch::Judgement none;
  const watch::Judgement& judgement = run.judgement ? *run.judgement : none;
  if (word.field == "state") {
    const auto& exit_status = run.summary.stages.back().exit_status;
    if (word.value == "failed")
      return run.summary.stages.back().out_of_memory || exit_status.value_or(0) != 0;
    return Lower(Name(run.state)).starts_with(word.value);
  }
  if (word.field == "finding") return judgement.finding == word.value || judgement.cause == word.value;
  if (word.field == "tag") return HasTag(run, word.value);
  if (word.field == "command") return Has(CommandOf(run), word.value);
  if (word.field == "run") return Has(name, word.value);
  if (word.field == "note") return Has(run.summary.note, word.value);
  const bool tagged = std::ranges::any_of(run.summary.tags, [&](const auto& tag) {
    return Has(tag.first, word.value) || Has(tag.second, word.value);
  });
  return tagged || Has(name, word.value) || Has(CommandOf(run), word.value) ||
         Has(judgement.verdict, word.value) || Has(run.summary.note, word.value);
}

bool RunFilter::Matches(const std::string& name, const watch::KnownRun& run) const {
  return std::ranges::all_of(words_,
                             [&](const Word& word) { return Holds(word, name, run) != word.not_this; });
}

}  // namespace fullbore::serve
