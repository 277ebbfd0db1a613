#include "cli/peers.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/command_line.h"
#include "base/secrets.h"

namespace fullbore::cli {

namespace {

using Word = std::pair<std::string_view, std::string_view>;  // theirs, ours

// Of nsys, ncu, py-spy, perf, rocprof, W&B, MLflow, TensorBoard, git and plain English.
constexpr Word kCommands[] = {
    {"record", "run"},     {"profile", "run"},     {"launch", "run"},        {"start", "run"},
    {"exec", "run"},       {"trace", "run"},       {"train", "run"},         {"time", "run"},
    {"report", "explain"}, {"analyze", "explain"}, {"analyse", "explain"},   {"diagnose", "explain"},
    {"show", "explain"},   {"inspect", "explain"}, {"summary", "explain"},   {"stats", "explain"},
    {"view", "explain"},   {"open", "explain"},    {"explore", "explain"},   {"dump", "explain --pid"},
    {"watch", "top"},      {"monitor", "top"},     {"stat", "top"},          {"live", "top"},
    {"list", "runs"},      {"ls", "runs"},         {"history", "runs"},      {"log", "runs"},
    {"ui", "serve"},       {"dashboard", "serve"}, {"server", "serve"},      {"web", "serve"},
    {"diff", "compare"},   {"ab", "compare"},      {"optimize", "tune"},     {"optimise", "tune"},
    {"autotune", "tune"},  {"sweep", "tune"},      {"benchmark", "measure"}, {"bench", "measure"},
    {"status", "doctor"},  {"info", "doctor"},     {"env", "doctor"},        {"check", "doctor"},
    {"convert", "export"}, {"docs", "help"},       {"man", "help"},
};

// Of the DataLoader's users, the Trainer's and Lightning's arguments.
constexpr Word kSettings[] = {
    {"dataloader_num_workers", "num_workers"},
    {"loader_workers", "num_workers"},
    {"per_device_train_batch_size", "batch_size"},
    {"train_batch_size", "batch_size"},
    {"bs", "batch_size"},
    {"gradient_accumulation_steps", "accumulate"},
    {"accumulate_grad_batches", "accumulate"},
    {"amp", "precision"},
    {"autocast", "precision"},
    {"bf16", "precision"},
    {"fp16", "precision"},
    {"torch_compile", "compile"},
    {"dataloader_pin_memory", "pin_memory"},
    {"dataloader_prefetch_factor", "prefetch_factor"},
    {"dataloader_persistent_workers", "persistent_workers"},
    {"allow_tf32", "tf32"},
    {"omp_num_threads", "intraop_threads"},
    {"num_threads", "intraop_threads"},
};

constexpr Word kChanges[] = {
    {"num_workers", "workers"},
    {"dataloader_num_workers", "workers"},
    {"pin_memory", "pin"},
    {"non_blocking", "pin"},
    {"amp", "precision"},
    {"autocast", "precision"},
    {"bf16", "precision"},
    {"fp16", "precision"},
    {"tf32", "precision"},
    {"cuda-graphs", "graphs"},
    {"cudagraphs", "graphs"},
    {"torch.compile", "compile"},
    {"fused", "fused-optimizer"},
    {"gc", "garbage-collection"},
    {"gradient_accumulation_steps", "accumulate"},
    {"accumulate_grad_batches", "accumulate"},
    {"bucket_cap_mb", "bucket"},
    {"nvlink", "links"},
    {"gpu", "device"},
};

// What starts a program that trains.
constexpr std::string_view kLaunchers[] = {
    "torchrun", "accelerate", "deepspeed", "lightning", "composer", "horovodrun",
    "srun",     "mpirun",     "mpiexec",   "uv",        "poetry",   "conda",
    "docker",   "podman",     "apptainer", "ipython",   "bash",     "sh",
};

constexpr std::string_view kRecordings[] = {".json", ".json.gz", ".json.zst", ".sqlite",
                                            ".fbr",  ".pickle",  ".trace.gz", ".nsys-rep"};

std::optional<std::string> Translated(std::span<const Word> words, std::string_view theirs) {
  const auto found =
      std::find_if(words.begin(), words.end(), [&](const Word& word) { return word.first == theirs; });
  return found == words.end() ? std::nullopt : std::optional<std::string>(found->second);
}

bool EndsLikeOneOf(std::string_view word, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return word.ends_with(ending); });
}

bool IsScript(std::string_view word) { return word.ends_with(".py") || word.ends_with(".sh"); }

bool StartsCommand(const std::string& word) {
  const std::string_view name = std::string_view(word).substr(word.rfind('/') + 1);
  return IsScript(name) || name.starts_with("python") ||
         std::find(std::begin(kLaunchers), std::end(kLaunchers), name) != std::end(kLaunchers) ||
         (name.size() < word.size() && access(word.c_str(), X_OK) == 0 && !word.ends_with('/'));
}

// A script that is not a program by itself goes to its interpreter.
std::vector<std::string> AsCommand(std::vector<std::string> words) {
  const std::string& first = words.front();
  const bool is_program = first.find('/') != std::string::npos && access(first.c_str(), X_OK) == 0;
  if (IsScript(first) && !is_program) words.insert(words.begin(), first.ends_with(".py") ? "python" : "sh");
  return words;
}

std::vector<std::string> CommandIn(std::span<const std::string> words) {
  const auto begin = std::find_if(words.begin(), words.end(), StartsCommand);
  return begin == words.end() ? std::vector<std::string>() : AsCommand({begin, words.end()});
}

std::string Joined(const std::string& line, std::vector<std::string> words) {
  return words.empty() ? line : line + " " + ShellLine(MaskSecrets(std::move(words)));
}

// Options of another tool are none of ours.
std::vector<std::string> WithoutOptions(std::span<const std::string> words) {
  std::vector<std::string> left;
  std::copy_if(words.begin(), words.end(), std::back_inserter(left),
               [](const std::string& word) { return !word.starts_with('-'); });
  return left;
}

bool TakesCommand(std::string_view subcommand) {
  return subcommand == "run" || subcommand == "tune" || subcommand == "measure";
}

bool TakesWords(std::string_view subcommand) {
  return subcommand.starts_with("explain") || subcommand == "compare" || subcommand == "export";
}

}  // namespace

std::optional<std::string> CommandLineMeant(const std::vector<std::string>& words,
                                            const std::vector<std::string>& command) {
  if (EndsLikeOneOf(words.front(), kRecordings)) return Joined("fullbore explain", WithoutOptions(words));
  if (StartsCommand(words.front())) return Joined("fullbore run --", AsCommand(words));
  const auto ours = Translated(kCommands, words.front());
  if (!ours) return std::nullopt;
  const std::span<const std::string> rest = std::span(words).subspan(1);
  std::vector<std::string> meant = command.empty() ? CommandIn(rest) : command;
  if (TakesCommand(*ours) && meant.empty()) meant = {"python", "train.py"};
  if (meant.empty())
    return Joined("fullbore " + *ours, TakesWords(*ours) ? WithoutOptions(rest) : std::vector<std::string>());
  return Joined("fullbore " + (TakesCommand(*ours) ? *ours : "run") + " --", meant);
}

std::optional<std::string> WithSeparator(const std::vector<std::string>& words,
                                         const std::vector<std::string>& left_over) {
  if (words.empty() || !TakesCommand(words.front())) return std::nullopt;
  const auto begin = std::find_if(words.begin() + 1, words.end(), [&](const std::string& word) {
    return StartsCommand(word) && std::find(left_over.begin(), left_over.end(), word) != left_over.end();
  });
  if (begin == words.end()) return std::nullopt;
  return Joined(Joined("fullbore", {words.begin(), begin}) + " --", AsCommand({begin, words.end()}));
}

std::optional<std::string> SettingOfPeers(std::string_view name) { return Translated(kSettings, name); }

std::optional<std::string> ChangeOfPeers(std::string_view name) { return Translated(kChanges, name); }

}  // namespace fullbore::cli
