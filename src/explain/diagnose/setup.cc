#include "explain/diagnose/setup.h"

#include <algorithm>
#include <array>

namespace fullbore::diagnose {

namespace {

// A setting as it stands in code, and the fact that it becomes.
struct Setting {
  std::string_view in_code, fact;
};
constexpr std::array kSettings = {
    Setting{"num_workers", "loader.num_workers"},
    Setting{"batch_size", "loader.batch_size"},
    Setting{"prefetch_factor", "loader.prefetch_factor"},
    Setting{"pin_memory", "loader.pin_memory"},
    Setting{"persistent_workers", "loader.persistent_workers"},
    Setting{"OMP_NUM_THREADS", "omp_num_threads"},
};

constexpr std::array<std::string_view, 12> kDecide = {"loader.num_workers",
                                                      "loader.batch_size",
                                                      "loader.pin_memory",
                                                      "loader.persistent_workers",
                                                      "loader.library",
                                                      "torch_threads",
                                                      "batch_shape",
                                                      "parameter_dtype",
                                                      "autocast",
                                                      "world_size",
                                                      "gpu",
                                                      "torch"};

std::string JsonBool(bool value) { return value ? "true" : "false"; }

bool IsWordOfCode(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// What is assigned to this name, without quotes; empty where it is not.
std::string_view AssignedTo(std::string_view name, std::string_view code) {
  for (size_t at = code.find(name); at != std::string_view::npos; at = code.find(name, at + 1)) {
    const size_t equals = at + name.size();
    const bool is_whole = at == 0 || !IsWordOfCode(code[at - 1]);
    if (!is_whole || equals >= code.size() || code[equals] != '=') continue;
    const auto end =
        std::find_if_not(code.begin() + static_cast<std::ptrdiff_t>(equals + 1), code.end(), IsWordOfCode);
    return code.substr(equals + 1, static_cast<size_t>(end - code.begin()) - equals - 1);
  }
  return {};
}

}  // namespace

std::map<std::string, std::string> LoaderFacts(const record::RankInfo& rank) {
  const auto loader = std::find_if(rank.loaders.begin(), rank.loaders.end(),
                                   [](const record::Loader& each) { return each.feeds_training; });
  if (loader == rank.loaders.end()) return {};
  std::map<std::string, std::string> facts = {
      {"loader.num_workers", std::to_string(loader->num_workers)},
      {"loader.pin_memory", JsonBool(loader->pin_memory)},
      {"loader.persistent_workers", JsonBool(loader->persistent_workers)}};
  if (loader->batch_size) facts["loader.batch_size"] = std::to_string(*loader->batch_size);
  if (loader->prefetch_factor && loader->num_workers > 0)
    facts["loader.prefetch_factor"] = std::to_string(*loader->prefetch_factor);
  if (!loader->library.empty()) facts["loader.library"] = "\"" + loader->library + "\"";
  return facts;
}

bool DecidesSpeed(std::string_view fact) {
  return std::find(kDecide.begin(), kDecide.end(), fact) != kDecide.end();
}

std::map<std::string, std::string> FactsOfChange(std::string_view change) {
  std::map<std::string, std::string> facts;
  for (const Setting& setting : kSettings) {
    const std::string_view value = AssignedTo(setting.in_code, change);
    if (value.empty()) continue;
    const bool is_bool = value == "True" || value == "False";
    facts[std::string(setting.fact)] = is_bool ? JsonBool(value == "True") : std::string(value);
  }
  return facts;
}

}  // namespace fullbore::diagnose
