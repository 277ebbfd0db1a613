#include "cli/completions.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>

#include "base/print.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "explain/analyze/section.h"
#include "explain/replay/change/change.h"
#include "report/finding_pages.h"
#include "tune/knob/knob.h"

namespace fullbore::cli {

namespace {

using Candidates = std::vector<Candidate>;

// Where the command line stands at the word that is being typed.
struct Place {
  const CLI::App* app;
  const CLI::Option* option = nullptr;  // which takes the word, if one does
  size_t positionals = 0;               // in front of it
  std::string runs_directory = kDefaultRunsDirectory;
};

// ---- what may stand where ----

Candidates Plain(std::initializer_list<const char*> words) {
  Candidates all;
  for (const char* word : words) all.push_back({word, ""});
  return all;
}

Candidates Runs(const Place& place) {
  Candidates all = {{std::string(kNewestRun), "the newest run"}};
  std::vector<std::filesystem::path> files = RunFiles(place.runs_directory);
  std::reverse(files.begin(), files.end());
  for (const auto& file : files) all.push_back({file.stem().string(), "run"});
  return all;
}

Candidates Sections(const Place&) {
  Candidates all;
  for (const analyze::Section* section : analyze::AllSections())
    all.push_back({section->name, section->summary});
  all.push_back({"all", "all of them"});
  return all;
}

Candidates Devices() {
  Candidates all;
  const std::string names = replay::KnownDevices();
  for (const std::string_view name : Split(names, ','))
    all.push_back({std::string(replay::kDevicePrefix) + std::string(Trim(name)), "the program runs on it"});
  return all;
}

Candidates Changes(const Place&) {
  Candidates all;
  for (const replay::Change* change : replay::AllChanges())
    all.push_back({std::string(change->id()), std::string(change->does())});
  for (const char* numbered : {"workers=", "links=", "accumulate=", "bucket="})
    all.push_back({numbered, "with a number of your own"});
  Candidates devices = Devices();
  std::move(devices.begin(), devices.end(), std::back_inserter(all));
  return all;
}

Candidates Settings(const Place&) {
  Candidates all;
  for (const tune::Knob& knob : tune::AllKnobs())
    all.push_back({std::string(knob.name) + "=", std::string(knob.what)});
  return all;
}

Candidates Knobs(const Place&) {
  Candidates all = Plain({"all", "loader"});
  for (const tune::Knob& knob : tune::AllKnobs())
    all.push_back({std::string(knob.called.empty() ? knob.name : knob.called), std::string(knob.what)});
  return all;
}

Candidates Topics(const Place&) {
  Candidates all;
  for (const std::string_view page : report::FindingPages()) {
    const std::string id = report::IdOfFindingPage(page);
    const std::string_view heading = page.substr(0, page.find('\n'));
    all.push_back({id, std::string(heading.substr(std::min(heading.size(), id.size() + 4)))});
  }
  return all;
}

// By the name of the option or positional, or by the type of its value.
struct Source {
  std::string_view name;
  std::function<Candidates(const Place&)> candidates;
  Paths paths = Paths::kNone;
};

Candidates Nothing(const Place&) { return {}; }

const std::vector<Source>& Sources() {
  static const std::vector<Source> all = {
      {"FILE", Nothing, Paths::kFiles},
      {"DIR", Nothing, Paths::kDirectories},
      {"DATABASE", Nothing, Paths::kFiles},
      {"TOML", Nothing, Paths::kFiles},
      {"--rules", [](const Place&) { return Plain({"default"}); }, Paths::kFiles},
      {"RUN", Runs, Paths::kFiles},
      {"A", Runs, Paths::kFiles},
      {"B", Runs, Paths::kFiles},
      {"RUN|TRACE", Runs, Paths::kFiles},
      {"TRACE", Nothing, Paths::kFiles},
      {"PATH", Nothing, Paths::kFiles},
      {"OUT", Nothing, Paths::kDirectories},
      {"--section", Sections},
      {"--what-if", Changes},
      {"--set", Settings},
      {"--knobs", Knobs},
      {"FINDING", Topics},
      {"SHELL",
       [](const Place&) {
         return Plain({"bash", "zsh", "fish"});
       }},
      {"--windows",
       [](const Place&) {
         return Plain({"off", "4@100", "every 10m"});
       }},
      {"--objective",
       [](const Place&) {
         return Plain({"throughput", "tokens", "cost", "memory"});
       }},
      {"--fail-if",
       [](const Place&) {
         return Plain({"slower", "not-faster", "not-proven"});
       }},
      {"GROUPING",
       [](const Place&) {
         return Plain({"user", "account", "partition", "device"});
       }},
      {"--on", [](const Place&) { return Plain({"slurm"}); }},
      {"--like", [](const Place&) { return Plain({"torch"}); }},
      {"FORMAT",
       [](const Place&) {
         return Plain({"perfetto", "csv", "steps-csv"});
       }},
  };
  return all;
}

const Source* SourceOf(const CLI::Option& option) {
  const auto named = [&](const Source& source) {
    return option.check_name(std::string(source.name)) || option.get_type_name() == source.name;
  };
  const auto found = std::find_if(Sources().begin(), Sources().end(), named);
  return found == Sources().end() ? nullptr : &*found;
}

// ---- where the command line stands ----

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

const CLI::Option* OptionNamed(const CLI::App& app, const std::string& name) {
  return app.get_option_no_throw(name);
}

const CLI::App* SubcommandNamed(const CLI::App& app, const std::string& name) {
  const auto all = app.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == name; });
  return all.empty() ? nullptr : all.front();
}

void Pass(Place& place, const std::string& word) {
  if (place.option != nullptr) {
    if (place.option->get_type_name() == "DIR") place.runs_directory = word;
    place.option = nullptr;
  } else if (word.starts_with('-') && word != "-") {
    const CLI::Option* option = OptionNamed(*place.app, word.substr(0, word.find('=')));
    if (option != nullptr && TakesValue(*option) && word.find('=') == std::string::npos)
      place.option = option;
  } else if (const CLI::App* sub = SubcommandNamed(*place.app, word)) {
    place.app = sub;
  } else {
    ++place.positionals;
  }
}

std::vector<const CLI::Option*> PositionalsOf(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

// The last of them may be given several times.
const CLI::Option* PositionalAt(const Place& place) {
  const auto all = PositionalsOf(*place.app);
  if (place.positionals < all.size()) return all[place.positionals];
  const bool more = !all.empty() && all.back()->get_items_expected_max() > 1;
  return more ? all.back() : nullptr;
}

// ---- candidates ----

// What fits beside a candidate in a terminal: the first part of its description.
std::string InShort(std::string_view what) {
  constexpr size_t kColumns = 70;
  what = what.substr(0, what.find('\n'));
  if (what.size() <= kColumns) return std::string(what);
  return std::string(what.substr(0, what.rfind(' ', kColumns))) + " ...";
}

void AddOptions(const CLI::App& app, Completions& all) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames())
      all.candidates.push_back({"--" + name, InShort(option->get_description())});
  }
}

void AddSubcommands(const CLI::App& app, Completions& all) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    all.candidates.push_back({sub->get_name(), InShort(sub->get_description())});
}

// `front` stays as it was typed: "--set=", or "steps," of a list.
void AddValues(const CLI::Option* option, const Place& place, const std::string& front, Completions& all) {
  const Source* source = option != nullptr ? SourceOf(*option) : nullptr;
  if (source == nullptr) return;
  for (const Candidate& each : source->candidates(place))
    all.candidates.push_back({front + each.word, InShort(each.what)});
  all.paths = source->paths;
}

// A run is known by a part of its id, too, as by the name that was given to it.
void KeepWhatBegins(const std::string& typed, Candidates& all) {
  Candidates begins, holds;
  for (const Candidate& each : all) {
    if (each.word.starts_with(typed)) begins.push_back(each);
    if (each.what == "run" && each.word.find(typed) != std::string::npos) holds.push_back(each);
  }
  all = begins.empty() && holds.size() == 1 ? holds : begins;
}

void AddWhatMayStand(const Place& place, const std::string& typed, Completions& all) {
  const size_t equals = typed.find('=');
  if (place.option != nullptr) {
    const std::string list =
        place.option->get_delimiter() == ',' ? typed.substr(0, typed.rfind(',') + 1) : "";
    AddValues(place.option, place, list, all);
  } else if (typed.starts_with("--") && equals != std::string::npos) {
    AddValues(OptionNamed(*place.app, typed.substr(0, equals)), place, typed.substr(0, equals + 1), all);
  } else if (typed.starts_with('-')) {
    AddOptions(*place.app, all);
  } else {
    if (place.positionals == 0) AddSubcommands(*place.app, all);
    AddValues(PositionalAt(place), place, "", all);
    const bool nothing = all.candidates.empty() && all.paths == Paths::kNone;
    if (typed.empty() && nothing) AddOptions(*place.app, all);
  }
}

}  // namespace

Completions CompletionsOf(const CLI::App& app, const std::vector<std::string>& words) {
  Completions all;
  if (words.empty()) return all;
  Place place{&app};
  std::for_each(words.begin(), words.end() - 1, [&](const std::string& word) { Pass(place, word); });
  AddWhatMayStand(place, words.back(), all);
  KeepWhatBegins(words.back(), all.candidates);
  return all;
}

int PrintCompletions(const CLI::App& app, const std::vector<std::string>& words) {
  const Completions all = CompletionsOf(app, words);
  for (const Candidate& each : all.candidates) Print(stdout, "{}\t{}\n", each.word, each.what);
  if (all.paths == Paths::kFiles) Print(stdout, ":files\n");
  if (all.paths == Paths::kDirectories) Print(stdout, ":directories\n");
  return 0;
}

}  // namespace fullbore::cli
