#include "explain/diagnose/judge/input_bound/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/command_line.h"
#include "base/text.h"
#include "explain/diagnose/places.h"

namespace fullbore::diagnose {

using record::Loader;
using record::Metric;

namespace {

double Rate(double samples, double ns) { return ns > 0 ? samples / ns * 1e9 : 0; }

bool IsImageFolder(const Loader* loader) {
  static const std::set<std::string> folders = {"ImageFolder", "DatasetFolder", "ImageNet"};
  return loader && folders.contains(loader->dataset);
}

}  // namespace

FetchParts PartsOf(const Loader& loader) {
  FetchParts parts;
  const auto batches = static_cast<double>(std::max<int64_t>(1, loader.batches));
  parts.total = static_cast<double>(loader.fetch_ns) / batches;
  parts.collate = static_cast<double>(loader.collate_ns) / batches;
  parts.cpu = static_cast<double>(loader.cpu_ns) / batches;
  parts.run_delay = static_cast<double>(loader.run_delay_ns) / batches;
  parts.blocked = std::max(0.0, parts.total - parts.cpu - parts.run_delay);
  parts.samples = std::max(1.0, static_cast<double>(loader.samples) / batches);
  // A usual sample: the mean over all samples that are not the slowest of their batch. Batches with two slow
  // ones make it look longer than it is, so the tail is understated rather than overstated.
  if (parts.samples > 1.5) {
    const double slowest = loader.slowest_sample_ns.mean();
    const double usual = std::max(0.0, (parts.total - parts.collate - slowest) / (parts.samples - 1));
    // Even among usual samples the slowest takes a little longer: that is not a tail.
    const double ordinary = std::max(usual, loader.slowest_sample_ns.Quantile(0.1));
    // One that waits for a core is no slow sample.
    parts.tail = std::max(0.0, slowest - ordinary - parts.run_delay);
  }
  return parts;
}

double LoaderRate(const Input& input) {
  const auto workers = static_cast<double>(std::max<int64_t>(1, input.loader.num_workers));
  return Rate(input.parts.samples * workers, input.parts.total);
}

double TrainingRate(const Input& input) {
  return Rate(input.parts.samples * input.pipeline.batches_per_step,
              input.rank.MeanStepNs() * (1 - input.finding.share));
}

bool KeepsUp(const Input& input) {
  return input.loader.num_workers > 0 && LoaderRate(input) > TrainingRate(input);
}

std::string FastDataCommand(const View& view) {
  const std::vector<std::string>& command = view.stage().command;
  return "fullbore run --fast-data -- " + (command.empty() ? "..." : ShellLine(command));
}

void AdviseCheaperLoading(const View& view, const Loader* loader, Finding& finding) {
  const bool missing = view.Fact("fast_data") == "missing";
  if (!IsImageFolder(loader) && !missing) {
    finding.fix.push_back(
        "make loading itself cheaper: do once, offline, what is the same in every epoch; whole-array calls "
        "instead of Python loops in __getitem__");
    return;
  }
  if (!loader->fast_refused.empty()) {
    finding.fix.push_back("fullbore.data cannot serve this loader: " + loader->fast_refused);
    return;
  }
  finding.fix.push_back(
      "make loading itself cheaper: try fullbore.data on the unchanged script (that run shows how much it "
      "gains): " +
      FastDataCommand(view));
  if (missing)
    finding.fix.push_back(
        "it needs fullbore.data, which this Python does not have: pip install . in fullbore's sources; "
        "fullbore doctor says whether it is there");
  finding.fix.push_back(kKeepFastData);
}

// A worker starts as a copy of the trainer and shares most of its memory; at worst it grows as large.
void SayWhetherMemoryAllows(Input& input, int64_t more) {
  const auto free = input.view.Mean(Metric::kMemoryAvailable);
  const bool some = input.loader.num_workers > 0;
  const auto used = input.view.Mean(Metric::kProcessMemory, {{"role", some ? "loader" : "trainer"}});
  if (!free || !used) return;
  const double each = *used / static_cast<double>(some ? input.loader.num_workers : 1);
  const bool room = static_cast<double>(more) * each < *free;
  const std::string figures =
      fmt::format("{} free, at most {} per worker", FormatBytes(*free), FormatBytes(each));
  input.finding.fix.push_back(room ? "host memory allows more workers: " + figures
                                   : "host memory is tight, add workers one at a time: " + figures);
}

// Where no worker was there to show that the script is made for it.
void SayWhatWorkersImport(Input& input) {
  if (input.loader.num_workers > 0 || !input.loader.WorkersImportScript()) return;
  input.finding.fix.push_back(
      fmt::format("its workers would start by {}, import the script again and get the dataset pickled: what "
                  "trains has to stand below if __name__ == \"__main__\"",
                  input.loader.start_method));
}

void NameLinesOfFetches(const Loader& loader, double share, Finding& finding) {
  constexpr size_t kNamed = 3;
  double all = 0;
  for (const record::HotLine& line : loader.lines) all += static_cast<double>(line.samples);
  std::vector<Place> places = PlacesOf(
      loader.lines, [](const record::HotLine&) { return true; }, all);
  places.resize(std::min(places.size(), kNamed));
  for (Place& place : places) place.share *= share;  // of what the training waits for them
  finding.where.insert(finding.where.begin(), places.begin(), places.end());
}

std::string WhatFetchesDo(const Loader& loader) {
  constexpr double kFewSamples = 10;
  double all = 0;
  for (const record::HotLine& line : loader.lines) all += static_cast<double>(line.samples);
  const std::vector<Place> places = PlacesOf(
      loader.lines, [](const record::HotLine&) { return true; }, all);
  if (all < kFewSamples || places.empty()) return "";
  const Place& hottest = places.front();
  std::map<std::string, double> libraries;
  for (const record::HotLine& line : loader.lines) {
    if (FileOrModule(line.file) == hottest.file && line.line == hottest.line && !line.library.empty())
      libraries[line.library] += static_cast<double>(line.samples) / all;
  }
  const auto most = std::ranges::max_element(libraries, {}, [](const auto& each) { return each.second; });
  const bool within = most != libraries.end() && 2 * most->second > hottest.share;
  return fmt::format("{} of a fetch is {}{}", FormatPercent(hottest.share), NameOf(hottest),
                     within ? ", in " + most->first : std::string());
}

std::string WaitsFor(const Input& input) {
  return fmt::format("Training waits for data {} of the time", FormatPercent(input.finding.share));
}

}  // namespace fullbore::diagnose
