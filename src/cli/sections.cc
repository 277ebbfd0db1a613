#include "cli/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "base/print.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "cli/traces.h"
#include "explain/analyze/rank_fitness.h"
#include "explain/analyze/section.h"
#include "report/json.h"

namespace fullbore::cli {

namespace {

struct Made {
  const analyze::Section* section;
  analyze::Table table;
};

Result<std::vector<Made>> SectionsNamed(const std::vector<std::string>& names) {
  std::vector<Made> made;
  for (const std::string& name : names) {
    if (name == "all") {
      for (const analyze::Section* section : analyze::AllSections())
        made.push_back({section, {section->columns, {}, {}}});
      continue;
    }
    const analyze::Section* section = analyze::SectionNamed(name);
    if (section == nullptr) {
      std::vector<std::string> known;
      for (const analyze::Section* each : analyze::AllSections()) known.emplace_back(each->name);
      const auto meant = Nearest(name, known);
      return Error{ErrorCode::kInvalidArgument, fmt::format("there is no section '{}'", name),
                   meant ? fmt::format("did you mean --section {}?", *meant)
                         : "the sections are " + NamesOfSections()};
    }
    made.push_back({section, {section->columns, {}, {}}});
  }
  return made;
}

struct OfRank {
  int64_t rank = 0;
  fitness::Fitness fitness;
};

nlohmann::ordered_json ToJson(const std::vector<OfRank>& ranks) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const OfRank& one : ranks) {
    json.push_back({{"rank", one.rank},
                    {"judgeable", one.fitness.CanBeJudged()},
                    {"conditions", report::ToJson(one.fitness)}});
  }
  return json;
}

nlohmann::ordered_json ToJson(const std::vector<Made>& sections, const std::vector<std::string>& traces,
                              const std::vector<OfRank>& ranks,
                              const std::vector<record::Message>& messages) {
  nlohmann::ordered_json json = {{"schema", "fullbore.sections/1"},
                                 {"source", traces},
                                 {"fitness", ToJson(ranks)},
                                 {"sections", nlohmann::ordered_json::array()},
                                 {"messages", nlohmann::ordered_json::array()}};
  for (const Made& made : sections) {
    nlohmann::ordered_json section = {{"name", made.section->name}, {"summary", made.section->summary}};
    section.update(analyze::ToJson(made.table));
    json["sections"].push_back(std::move(section));
  }
  for (const record::Message& message : messages) json["messages"].push_back(message.text);
  return json;
}

// First: what a table is of decides how it is read.
void PrintFitness(const std::vector<OfRank>& ranks) {
  bool any = false;
  for (const OfRank& one : ranks) {
    const std::string whose = ranks.size() > 1 ? fmt::format("rank {}: ", one.rank) : "";
    const fitness::Condition* refusal = one.fitness.WhyNot(fitness::Conclusion::kAnything);
    if (refusal != nullptr) PrintWrapped(whose + one.fitness.Refusal(), 2, 4);
    for (const fitness::Condition& condition : one.fitness.conditions)
      if (&condition != refusal) PrintWrapped(whose + condition.says, 2, 4);
    any = any || !one.fitness.conditions.empty();
  }
  if (any) Print(stdout, "\n");
}

}  // namespace

std::string NamesOfSections() {
  std::string names;
  for (const analyze::Section* section : analyze::AllSections()) names += fmt::format("{}, ", section->name);
  return names + "and all";
}

std::string ListOfSections() {
  std::string list;
  for (const analyze::Section* section : analyze::AllSections())
    list += fmt::format("  {:<22} {}\n", section->name, section->summary);
  return list + fmt::format("  {:<22} {}", "all", "all of them");
}

int ExplainSections(const std::vector<std::string>& traces, const SectionFlags& flags) {
  auto sections = SectionsNamed(flags.names);
  if (!sections) return Fail(sections.error(), kExitUsage);
  if (flags.csv.wanted() && sections->size() != 1) {
    return Fail(
        {ErrorCode::kInvalidArgument, fmt::format("--csv holds one section, not {}", sections->size()),
         "name one with --section, or write --json"},
        kExitUsage);
  }
  std::vector<OfRank> ranks;
  std::vector<record::Message> notes;
  const auto messages = [&] {
    ReadingLine line;
    return ingest::VisitTraces(traces, TraceOptionsFor(&line, flags.like_hta),
                               [&](timeline::DeviceTrace& trace, const std::string&) {
                                 const analyze::RankTrace rank(trace);
                                 for (Made& made : *sections) made.section->append(rank, &made.table);
                                 ranks.push_back({rank.rank(), analyze::FitnessOf(rank)});
                                 for (const std::string& note : trace.notes)
                                   notes.push_back({std::nullopt, record::Severity::kInfo, "ingest", note});
                                 for (const auto& [what, count] : trace.left_out) {
                                   notes.push_back({std::nullopt, record::Severity::kWarning, "ingest",
                                                    fmt::format("left out: {} {}", count, what)});
                                 }
                               });
  }();
  if (!messages) return Fail(messages.error(), StatusOf(messages.error()));
  notes.insert(notes.end(), messages->begin(), messages->end());
  Result<void> written;
  if (flags.csv.wanted()) written = flags.csv.Write(analyze::ToCsv(sections->front().table));
  if (written && flags.json.wanted())
    written = WriteJson(flags.json, ToJson(*sections, traces, ranks, notes));
  if (!written) return Fail(written.error(), kExitFailure);
  if (AnyToStandardOutput({&flags.csv, &flags.json})) return 0;
  PrintFitness(ranks);
  for (const Made& made : *sections) {
    PrintWrapped(fmt::format("{}: {}", made.section->name, made.section->summary), 0, 2);
    PrintLaidOut(stdout,
                 "\n" + analyze::ToText(made.table, flags.rows, OutputColumns(), LocaleIsUtf8()) + "\n");
  }
  for (const record::Message& note : notes) PrintWrapped(note.text, 2, 4);
  return 0;
}

}  // namespace fullbore::cli
