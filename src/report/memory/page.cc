#include "report/memory/page.h"

#include "report/memory/json.h"
#include "report/memory/page_sources.h"
#include "report/memory/sentences.h"
#include "report/memory/terminal.h"
#include "report/page_file.h"
#include "report/page_sources.h"

namespace fullbore::report {

std::string MemoryToHtml(std::span<const memory::DeviceAccount> accounts, const std::string& name) {
  nlohmann::ordered_json data = MemoryToJson(accounts, name);
  for (size_t i = 0; i < accounts.size(); ++i) {
    nlohmann::ordered_json& device = data["devices"][i];
    for (size_t k = 0; k < accounts[i].what_if.size(); ++k)
      device["what_if"][k]["says"] = WhatIfText(accounts[i].what_if[k], accounts[i]);
    nlohmann::ordered_json& curve = device["curve"] = nlohmann::ordered_json::array();
    for (const memory::Moment& each : accounts[i].curve)
      if (each.time_us) curve.push_back({*each.time_us, each.allocated, each.reserved});
  }
  return PageFile({"memory: " + name, MemoryToTerminal(accounts, name, {100, false, true}), data,
                   std::string(kPageCss) + std::string(kMemoryCss), std::string(kMemoryJs)});
}

}  // namespace fullbore::report
