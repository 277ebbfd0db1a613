#include "fleet/migrate.h"

#include <map>
#include <utility>
#include <vector>

#include "fleet/tables.h"

namespace fullbore::fleet {

namespace {

using Run = std::pair<std::string, int64_t>;  // its id, and when it began

struct Known {
  RunAccount account;
  Stamp stamp;
};

constexpr char kColumns[] =
    R"(id, begin_unix_ns, path, "user", job, account, partition, device, devices, given_ns, ended, command, verdict,
       node, steps_per_s, directory)";

Result<std::map<Run, Known>> ReadVersion1(sql::Connection& connection) {
  std::map<Run, Known> all;
  std::map<std::string, Stamp> seen;
  auto asked = connection.Query("SELECT path, bytes, changed_ns FROM seen", {}, [&](const sql::Row& row) {
    seen[row.Text(0)] = {row.Int(1), row.Int(2)};
  });
  if (!asked) return asked.error();
  asked = connection.Query(std::string("SELECT ") + kColumns + " FROM run", {}, [&](const sql::Row& row) {
    Known& run = all[{row.Text(0), row.Int(1)}];
    RunAccount& account = run.account;
    account.id = row.Text(0);
    account.begin_unix_ns = row.Int(1);
    account.path = row.Text(2);
    account.user = row.Text(3);
    account.job = row.Text(4);
    account.account = row.Text(5);
    account.partition = row.Text(6);
    account.device = row.Text(7);
    account.devices = row.Int(8);
    account.given_ns = row.Int(9);
    account.ended = row.Int(10) != 0;
    account.command = row.Text(11);
    account.verdict = row.Text(12);
    account.node = row.Text(13);
    account.steps_per_s = row.Double(14);
    account.directory = row.Text(15);
    run.stamp = seen[account.path];
  });
  if (!asked) return asked.error();
  asked = connection.Query("SELECT id, begin_unix_ns, kind, cause, device_ns FROM part", {},
                           [&](const sql::Row& row) {
                             AddUp(all[{row.Text(0), row.Int(1)}].account.parts,
                                   {KindNamed(row.Text(2)), row.Text(3), row.Int(4)});
                           });
  if (!asked) return asked.error();
  asked = connection.Query(
      "SELECT id, begin_unix_ns, finding, cause, title, change, low, expected, high, steady_ns FROM advice "
      "ORDER BY place",
      {}, [&](const sql::Row& row) {
        all[{row.Text(0), row.Int(1)}].account.advice.push_back({row.Text(2), row.Text(3), row.Text(4),
                                                                 row.Text(5), row.Double(6), row.Double(7),
                                                                 row.Double(8), row.Int(9)});
      });
  if (!asked) return asked.error();
  return all;
}

}  // namespace

Result<void> MoveFromVersion1(sql::Connection& connection,
                              const std::function<Result<void>(const RunAccount&, const Stamp&)>& put) {
  const auto all = ReadVersion1(connection);
  if (!all) return all.error();
  auto done = connection.RunScript(
      "DROP TABLE fleet; DROP TABLE seen; DROP TABLE run; DROP TABLE part; DROP TABLE advice;");
  if (done) done = connection.RunScript(TablesSql());
  for (auto run = all->begin(); done && run != all->end(); ++run)
    done = put(run->second.account, run->second.stamp);
  return done;
}

Result<void> MoveFromVersion2(sql::Connection& connection) {
  return connection.RunScript(
      "ALTER TABLE asked ADD COLUMN hardly BIGINT NOT NULL DEFAULT 1;"
      "ALTER TABLE asked ADD COLUMN within BIGINT NOT NULL DEFAULT 0;"
      "UPDATE fleet SET version = 3;");
}

}  // namespace fullbore::fleet
