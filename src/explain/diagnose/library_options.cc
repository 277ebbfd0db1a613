#include "explain/diagnose/library_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace fullbore::diagnose {

namespace {

struct Options {
  std::string_view library;
  const char* data;
  const char* logging;
};

// Sources: the libraries' own documentation (docs/findings/host-other.md, docs/findings/input-bound.md).
constexpr Options kOptions[] = {
    {"ultralytics", "workers=...", "plots=False, verbose=False"},
    {"transformers", "TrainingArguments(dataloader_num_workers=...)", "TrainingArguments(logging_steps=...)"},
    {"trl", "its config's dataloader_num_workers=...", "its config's logging_steps=..."},
    {"sentence_transformers", "SentenceTransformerTrainingArguments(dataloader_num_workers=...)",
     "SentenceTransformerTrainingArguments(logging_steps=...)"},
    {"lightning", "the DataLoader(num_workers=...) given to Trainer.fit", "Trainer(log_every_n_steps=...)"},
    {"pytorch_lightning", "the DataLoader(num_workers=...) given to Trainer.fit",
     "Trainer(log_every_n_steps=...)"},
    {"torch_geometric", "torch_geometric.loader.DataLoader(num_workers=...), whose workers also collate", ""},
    {"fastai", "DataLoaders(num_workers=...)", ""},
    {"keras", "PyDataset(workers=..., use_multiprocessing=True)", "fit(verbose=0)"},
};

}  // namespace

std::string OptionOf(const std::string& library, const std::string& cause) {
  const auto at = std::find_if(std::begin(kOptions), std::end(kOptions),
                               [&](const Options& row) { return row.library == library; });
  if (at == std::end(kOptions)) return "";
  const bool of_data = cause == "data-preparation" || cause == "tokenising" || cause == "own-loader" ||
                       cause == "own-iterator";
  const std::string_view option = of_data ? at->data : cause == "logging" ? at->logging : "";
  return option.empty() ? "" : fmt::format("{} runs this loop: {}", library, option);
}

std::string LibraryIn(const RankView& rank, record::Share share) {
  const record::HotLine* hottest = nullptr;
  for (const record::HotLine& line : rank.info->hot_lines) {
    if (line.share == share && !line.file.empty() && (!hottest || line.samples > hottest->samples))
      hottest = &line;
  }
  return hottest ? hottest->library : "";
}

}  // namespace fullbore::diagnose
