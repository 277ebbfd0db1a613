// Steps and step windows as columns, and the parts of a rank that are stored as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/recording.h"

namespace fullbore::record {

std::string EncodeSteps(const std::vector<Step>& steps);
Result<std::vector<Step>> DecodeSteps(std::string_view bytes);

std::string EncodeWindows(const std::vector<StepWindow>& windows);
Result<std::vector<StepWindow>> DecodeWindows(std::string_view bytes);

std::string TotalsToJson(const RankInfo& rank);
void TotalsFromJson(const std::string& text, RankInfo& rank);  // ignores unknown members

std::string HotLinesToJson(const std::vector<HotLine>& lines);
std::vector<HotLine> HotLinesFromJson(const std::string& text);

std::string LoaderToJson(const Loader& loader);  // without its sketches
Loader LoaderFromJson(const std::string& text);

std::string MapToJson(const std::map<std::string, std::string>& map);
std::map<std::string, std::string> MapFromJson(const std::string& text);

}  // namespace fullbore::record
