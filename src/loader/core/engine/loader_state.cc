#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fullbore/loader.h"

namespace fullbore::loader {
namespace {

constexpr int kVersion = 1;

}  // namespace

std::string LoaderState::ToJson() const {
  return nlohmann::json{
      {"version", kVersion}, {"seed", seed}, {"epoch", epoch}, {"consumed", consumed}, {"samples", samples}}
      .dump();
}

Result<LoaderState> LoaderState::FromJson(std::string_view text) {
  const auto parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Error not_a_state{ErrorCode::kInvalidArgument, "this is not the state of a loader",
                          "pass what state_dict() returned, unchanged"};
  if (!parsed.is_object()) return not_a_state;
  try {
    if (parsed.at("version") != kVersion) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("the loader's state has version {}, but this fullbore reads version {}",
                               parsed["version"].dump(), kVersion),
                   "restore it with the version of fullbore that wrote it"};
    }
    return LoaderState{parsed.at("seed"), parsed.at("epoch"), parsed.at("consumed"), parsed.at("samples")};
  } catch (const nlohmann::json::exception&) {
    return not_a_state;
  }
}

}  // namespace fullbore::loader
