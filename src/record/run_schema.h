// The tables of a run file, shared by its writer and its reader. docs/run-file.md documents them.
#pragma once

namespace fullbore::record {

inline constexpr char kRunFormat[] = "fullbore-run/1";

inline constexpr char kRunTables[] = R"sql(
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tag (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS machine (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS stage (
  id INTEGER PRIMARY KEY, name TEXT, command TEXT, directory TEXT, begin_ns INTEGER, end_ns INTEGER,
  state INTEGER, exit_status INTEGER, out_of_memory INTEGER);
CREATE TABLE IF NOT EXISTS series (
  id INTEGER PRIMARY KEY, stage INTEGER, name TEXT, unit TEXT, labels TEXT, resolution REAL);
CREATE TABLE IF NOT EXISTS readings (
  stage INTEGER, probe INTEGER, begin_ns INTEGER, end_ns INTEGER, count INTEGER, data BLOB,
  PRIMARY KEY (stage, probe, begin_ns)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rank (
  stage INTEGER, rank INTEGER, pid INTEGER, hostname TEXT, device TEXT, samples_known INTEGER,
  device_activity INTEGER, totals TEXT, facts TEXT, hot_lines TEXT, PRIMARY KEY (stage, rank)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS loader (
  stage INTEGER, rank INTEGER, id INTEGER, about TEXT, batch_fetch BLOB, slowest_sample BLOB, wait BLOB,
  PRIMARY KEY (stage, rank, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS step (
  stage INTEGER, rank INTEGER, first_end_ns INTEGER, count INTEGER, data BLOB,
  PRIMARY KEY (stage, rank, first_end_ns)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS step_window (
  stage INTEGER, rank INTEGER, begin_ns INTEGER, count INTEGER, data BLOB,
  PRIMARY KEY (stage, rank, begin_ns)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS process (
  stage INTEGER, pid INTEGER, parent_pid INTEGER, role TEXT, rank INTEGER, command TEXT, begin_ns INTEGER,
  end_ns INTEGER, PRIMARY KEY (stage, pid, begin_ns)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS device_window (
  stage INTEGER, rank INTEGER, first_step INTEGER, steps INTEGER, trace BLOB,
  PRIMARY KEY (stage, rank, first_step)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS message (
  stage INTEGER, t_ns INTEGER, severity INTEGER, source TEXT, text TEXT);
)sql";

// Beside the recorder's own: written by who keeps watch, when the first alert fires.
inline constexpr char kAlertTable[] = R"sql(
CREATE TABLE IF NOT EXISTS alert (
  id INTEGER PRIMARY KEY, stage INTEGER, rule TEXT, since_ns INTEGER, fired_ns INTEGER, resolved_ns INTEGER,
  what TEXT, details TEXT, undelivered TEXT);
)sql";

}  // namespace fullbore::record
