// A database by its SQL, as far as SQLite and PostgreSQL agree: a file, or a server. One connection, one thread.
//
// Placeholders are $1, $2, ..., and no SQL has another $. A server's texts are mended to what it takes: valid UTF-8
// without zeros. Messages name the database with the secrets of its address masked.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace fullbore::fleet::sql {

using Value = std::variant<int64_t, double, std::string>;
using Values = std::vector<Value>;

// One row of an answer, valid while its callback runs. What is NULL is 0 or empty.
class Row {
 public:
  virtual ~Row() = default;
  virtual int64_t Int(int column) const = 0;
  virtual double Double(int column) const = 0;
  virtual std::string Text(int column) const = 0;
};

class Connection {
 public:
  virtual ~Connection() = default;

  virtual Result<bool> HasTable(const std::string& name) = 0;
  virtual Result<bool> IsEmpty() = 0;  // it has no tables at all
  virtual Result<bool> MayDelete(const std::string& table) = 0;
  virtual Result<void> RunScript(const std::string& sql) = 0;                     // statements without values
  virtual Result<int64_t> Run(const std::string& sql, const Values& values) = 0;  // rows that it changed
  virtual Result<void> Query(const std::string& sql, const Values& values,
                             const std::function<void(const Row&)>& each) = 0;

  // All that the work does, or nothing: after an error, or where the process is killed. Waits for other writers; work
  // that a server refused for the sake of theirs is done again.
  virtual Result<void> Together(const std::function<Result<void>()>& work) = 0;
  // The same, while nobody else does so: for what must be made once.
  virtual Result<void> Alone(const std::function<Result<void>()>& work) = 0;

  // Several queries that see one state. A file is read as it was when it was opened.
  virtual Result<void> AtOneMoment(const std::function<Result<void>()>& work) = 0;

  virtual std::string name() const = 0;
};

// "postgresql://user@host:port/database" or "postgres://...": libpq's, with all that it understands there and its
// environment (PGPASSWORD, ~/.pgpass, PGSSLMODE); our tables lie in its schema `fullbore`.
bool IsServer(std::string_view target);

// Anything else is a file of SQLite.
enum class Access : uint8_t { kRead, kWrite };
Result<std::unique_ptr<Connection>> Connect(const std::string& target, Access access);

// What a role was not granted is kPermission.
Result<std::unique_ptr<Connection>> ConnectFile(const std::string& path, Access access);
Result<std::unique_ptr<Connection>> ConnectServer(const std::string& url, Access access);

}  // namespace fullbore::fleet::sql
