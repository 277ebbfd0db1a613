// Tables of a TOML file that people write: every problem is an error with its file and line, and a hint.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace fullbore {

// One table. The first problem of the file is kept in `error`, and what is read after it does not matter.
class TomlTable {
 public:
  // `where`: what a message says the table is, as "alert 'waits for data'"; empty for the file's own.
  TomlTable(const toml::table& table, std::string where, const std::string& path, std::optional<Error>& error)
      : table_(table), where_(std::move(where)), path_(path), error_(error) {}

  void Refuse(const toml::source_region& place, const std::string& what, const std::string& hint);
  void Refuse(const std::string& what, const std::string& hint) { Refuse(table_.source(), what, hint); }
  void RefuseKey(const std::string& key, const std::string& what, const std::string& hint);

  bool Has(const std::string& key) const { return table_.contains(key); }
  const toml::node* Get(const std::string& key);  // null if it is not there

  std::string Text(const std::string& key);
  std::string TextOr(const std::string& key, const std::string& otherwise);
  std::string OneOf(const std::string& key, const std::vector<std::string>& words);
  // `what`: what it is, as "a share of the step"; without `otherwise` it must be there.
  double Number(const std::string& key, std::optional<double> otherwise, double least, double most,
                const char* what);
  int64_t Time(const std::string& key, int64_t otherwise_ns);  // "90s", "2h", up to a week

  // Called last: whatever nobody asked for is a mistake.
  void RefuseOthers();

  static std::string Listed(const std::vector<std::string>& words);

 private:
  const toml::table& table_;
  const std::string where_;
  const std::string& path_;
  std::optional<Error>& error_;
  std::set<std::string> known_;
};

// The tables of the list `key` of `root`, as [[key]] begins each; empty where there is none.
std::vector<const toml::table*> TomlTables(TomlTable& root, const std::string& key, size_t most);

// An error with the line where the text is no TOML; `hint` says where the file is described.
Result<toml::table> ParseToml(std::string_view text, const std::string& path, const std::string& hint);

}  // namespace fullbore
