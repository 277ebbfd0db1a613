#include "record/run_edit.h"

#include "record/database.h"
#include "record/run_of_nodes.h"
#include "record/run_reader.h"

namespace fullbore::record {

namespace {

// One transaction on a file that is a run. Afterwards the log is merged into the file, unless its recorder has it open.
template <typename Change>
Result<void> Edit(const std::string& path, Change change) {
  if (IsRunOfNodes(path)) {
    const auto file = FileWithTagsOf(path);
    if (!file) return file.error();
    return Edit(*file, change);
  }
  if (const auto run = ReadRunSummary(path); !run) return run.error();
  auto database = Database::OpenForWriting(path);
  if (!database) return database.error();
  if (auto begun = database->Execute("BEGIN IMMEDIATE"); !begun) return begun;
  Result<void> changed = change(*database);
  if (changed) changed = database->Execute("COMMIT");
  if (!changed) (void)database->Execute("ROLLBACK");
  (void)database->Execute("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE;");
  return changed;
}

Result<void> Put(Database& database, const char* sql, const std::string& key, const std::string& value) {
  auto statement = database.Prepare(sql);
  if (!statement) return statement.error();
  return statement->Bind(std::string_view(key)).Bind(std::string_view(value)).Run();
}

}  // namespace

Result<void> SetTags(const std::string& path, const std::map<std::string, std::string>& tags) {
  return Edit(path, [&](Database& database) -> Result<void> {
    Result<void> done = database.Execute("DELETE FROM tag");
    for (const auto& [key, value] : tags) {
      if (done) done = Put(database, "INSERT OR REPLACE INTO tag VALUES (?, ?)", key, value);
    }
    return done;
  });
}

Result<void> SetNote(const std::string& path, const std::string& note) {
  return Edit(path, [&](Database& database) {
    return Put(database, "INSERT OR REPLACE INTO meta VALUES (?, ?)", "note", note);
  });
}

}  // namespace fullbore::record
