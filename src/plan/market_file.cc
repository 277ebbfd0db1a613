#include "plan/market_file.h"

#include <fmt/format.h>

#include <set>

#include "base/small_file.h"
#include "base/text.h"
#include "base/toml_table.h"

namespace fullbore::plan {

namespace {

constexpr char kHint[] =
    "docs/plan.md describes the file; `fullbore plan --prices-example` prints one to start from";
constexpr size_t kMostOffers = 1000;
constexpr double kMostGpus = 1024, kMostCores = 4096, kMostGb = 1e6, kMostPerHour = 1e6;

const roofline::Device* ReadDevice(TomlTable& table) {
  const std::string name = table.Text("device");
  const roofline::Device* device = roofline::DeviceMeant(name);
  if (device != nullptr || table.failed()) return device;
  table.RefuseKey("device", fmt::format("no device is called \"{}\"", name), roofline::HintForDevice(name));
  return device;
}

// "2026-11-29" as a date of TOML's, or as a text.
std::string ReadDate(TomlTable& table) {
  const toml::node* node = table.Get("date");
  if (const auto date = node ? node->value<toml::date>() : std::nullopt)
    return fmt::format("{:04}-{:02}-{:02}", date->year, date->month, date->day);
  const std::string text = table.Text("date");
  const auto parts = Split(std::string_view(text), '-');
  if (parts.size() == 3 && text.size() == 10 && ParseInt(parts[0]) && ParseInt(parts[1]) &&
      ParseInt(parts[2]))
    return text;
  table.RefuseKey("date", fmt::format("date = \"{}\" is no date", text), "for instance date = 2026-11-29");
  return text;
}

int64_t ReadCount(TomlTable& table, const std::string& key, int64_t otherwise) {
  const double number =
      table.Number(key, static_cast<double>(otherwise), 1, kMostGpus, "a number of devices");
  const auto whole = static_cast<int64_t>(number);
  if (static_cast<double>(whole) != number)
    table.RefuseKey(key, fmt::format("{} = {} is not a whole number", key, number), "");
  return std::max<int64_t>(1, whole);
}

void ReadPrice(TomlTable& table, Machine& machine) {
  if (!table.Has("per_hour")) {
    for (const char* key : {"per_hour", "source", "date"}) (void)table.Get(key);
    return;
  }
  machine.per_hour = table.Number("per_hour", std::nullopt, 0, kMostPerHour, "a price");
  if (!table.Has("source") || !table.Has("date"))
    table.RefuseKey(
        "per_hour", "a price needs its source and its date",
        "source = \"https://...\" and date = 2026-11-29: whoever reads it next year wants to know");
  machine.source = table.Text("source");
  machine.date = ReadDate(table);
}

Offer ReadOffer(const toml::table& from, const std::string& path, std::optional<Error>& error) {
  TomlTable unnamed(from, "", path, error);
  Offer offer;
  Machine& machine = offer.machine;
  machine.name = unnamed.Text("name");
  TomlTable table(from, fmt::format("machine '{}'", machine.name), path, error);
  (void)table.Get("name");
  machine.device = ReadDevice(table);
  machine.gpus = ReadCount(table, "gpus", 1);
  offer.up_to = ReadCount(table, "up_to", machine.gpus);
  if (offer.up_to % machine.gpus != 0)
    table.RefuseKey("up_to", fmt::format("up_to = {} is no multiple of gpus = {}", offer.up_to, machine.gpus),
                    "");
  machine.cores = table.Number("cores", std::nullopt, 1, kMostCores, "a number of cores");
  machine.threads_per_core = table.Number("threads_per_core", 0, 1, 8, "a number of threads");
  machine.memory_bytes = 1e9 * table.Number("memory_gb", 0, 0.1, kMostGb, "a size");
  const double sheet_gb = machine.device != nullptr ? machine.device->memory_gb : 0;
  machine.device_memory_bytes = 1e9 * table.Number("device_memory_gb", sheet_gb, 0.1, kMostGb, "a size");
  machine.names_device_memory = table.Has("device_memory_gb");
  machine.link_bytes_per_s = 1e9 * table.Number("link_gb_s", 0, 0.01, kMostGb, "a bandwidth");
  if (table.Get("link_source")) (void)table.Text("link_source");
  if (machine.link_bytes_per_s > 0 && !table.Has("link_source"))
    table.RefuseKey("link_gb_s", "a bandwidth needs its source",
                    "link_source = \"...\": a data sheet, or what nccl-tests reached as busbw");
  ReadPrice(table, machine);
  table.RefuseOthers();
  return offer;
}

}  // namespace

Result<Market> ParseMarket(std::string_view text, const std::string& path) {
  const auto parsed = ParseToml(text, path, kHint);
  if (!parsed) return parsed.error();
  std::optional<Error> error;
  TomlTable root(*parsed, "", path, error);
  Market market;
  market.currency = root.TextOr("currency", "USD");
  for (const toml::table* from : TomlTables(root, "machine", kMostOffers)) {
    if (error) break;
    market.offers.push_back(ReadOffer(*from, path, error));
  }
  root.RefuseOthers();
  if (!error && market.offers.empty()) root.Refuse("no machine is in it", kHint);
  if (error) return *error;
  return market;
}

Result<Market> ReadMarket(const std::string& path) {
  const auto text = ReadSmallFile(path);
  if (!text) return text.error();
  return ParseMarket(*text, path);
}

}  // namespace fullbore::plan
