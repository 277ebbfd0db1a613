// A table of a TOML file that people write, read key by key. Whatever is wrong is said with its file and line, and with
// what would be right; the first problem of a file only.
//
//   std::optional<Error> error;
//   TomlTable table(parsed, "alert 'slow'", path, error);
//   rule.name = table.Text("name");
//   table.RefuseOthers();
//   if (error) return *error;
#pragma once

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

// The file's own table; `hint`: where its form is described.
Result<toml::table> ParseToml(std::string_view text, const std::string& path, const std::string& hint);

// Borrows everything; what is read after the first problem does not matter.
class TomlTable {
 public:
  // `where` is how messages call it; empty for the file itself.
  TomlTable(const toml::table& table, std::string where, const std::string& path, std::optional<Error>& error)
      : table_(table), where_(std::move(where)), path_(path), error_(error) {}

  void Refuse(const toml::source_region& place, const std::string& what, const std::string& hint);
  void Refuse(const std::string& what, const std::string& hint) { Refuse(table_.source(), what, hint); }
  void RefuseKey(const std::string& key, const std::string& what, const std::string& hint);
  bool failed() const { return error_.has_value(); }

  bool Has(const std::string& key) const { return table_.contains(key); }
  const toml::node* Get(const std::string& key) {
    known_.insert(key);
    return table_.get(key);
  }

  std::string Text(const std::string& key);
  // The text, which must be one of a few.
  std::string OneOf(const std::string& key, const std::vector<std::string>& words);
  double Number(const std::string& key, std::optional<double> otherwise, double least, double most,
                const char* what);
  // Called last: whatever nobody asked for is a mistake.
  void RefuseOthers();

  static std::string Listed(const std::vector<std::string>& words);

 private:
  const toml::table& table_;
  const std::string where_;  // "alert 'waits for data'"
  const std::string& path_;
  std::optional<Error>& error_;
  std::set<std::string> known_;
};

}  // namespace fullbore
