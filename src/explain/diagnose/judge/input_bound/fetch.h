// What the causes of input-bound share where the fetches of a DataLoader were recorded.
#pragma once

#include <string>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"
#include "explain/replay/pipeline.h"

namespace fullbore::diagnose {

// What the fetch of an average batch consists of, in nanoseconds.
struct FetchParts {
  double total = 0;
  double collate = 0;
  double cpu = 0;
  double run_delay = 0;  // ready to run, but waiting for a core
  double blocked = 0;    // neither on a core nor waiting for one: storage, network, locks
  double tail = 0;       // by how much its slowest sample exceeds a usual one
  double samples = 1;

  double Part(double ns) const { return total > 0 ? ns / total : 0; }
};

FetchParts PartsOf(const record::Loader& loader);

struct Input {
  const View& view;
  const RankView& rank;
  const record::Loader& loader;
  FetchParts parts;
  replay::Pipeline pipeline;
  Finding finding;
  double removes_besides = 0;  // of the step: what its cure removes besides the wait
};

// What the loader alone delivers, and what the training could take: samples a second.
double LoaderRate(const Input& input);
double TrainingRate(const Input& input);

// Whether its workers deliver more than the training takes: then it waits for batches to be handed over, whatever their
// fetches consist of.
bool KeepsUp(const Input& input);

// "Training waits for data 37 % of the time"
std::string WaitsFor(const Input& input);

// Makes loading itself cheaper. fullbore.data reads what torchvision's image folders read. What it would gain is
// only promised where its cost was measured.
void AdviseCheaperLoading(const View& view, const record::Loader* loader, Finding& finding);

// Whether host memory has room for so many workers more.
void SayWhetherMemoryAllows(Input& input, int64_t more);

// Where no worker was there to show that the script is made for it.
void SayWhatWorkersImport(Input& input);

// The lines in which its workers were seen while they fetched, hottest first; `share` of the step waits for them.
void NameLinesOfFetches(const record::Loader& loader, double share, Finding& finding);

// "92 % of a fetch is load.py:40, in h5py": what its workers do; empty where too few samples tell.
std::string WhatFetchesDo(const record::Loader& loader);

std::string FastDataCommand(const View& view);
inline constexpr const char* kKeepFastData =
    "keep it with one line: loader = fullbore.data.from_torch(loader)";

}  // namespace fullbore::diagnose
