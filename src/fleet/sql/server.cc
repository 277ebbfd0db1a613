#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "base/secrets.h"
#include "base/text.h"
#include "base/utf8.h"
#include "fleet/sql/libpq.h"
#include "fleet/sql/sql.h"

namespace fullbore::fleet::sql {

namespace {

// SQLSTATE, appendix A of PostgreSQL's manual.
constexpr std::string_view kNotAllowed = "42501", kSerialization = "40001", kDeadlock = "40P01";
constexpr char kConnectTimeoutS[] = "10";
// Sums over a million runs take memory rather than files, and end before compiling their expressions has paid.
constexpr char kForReading[] =
    "SET default_transaction_read_only TO on; SET work_mem TO '256MB'; SET jit TO off";
constexpr int64_t kLock =
    0x66756c6c626f7265;  // "fullbore": of all that the application locks in this database

struct CloseResult {
  const Libpq* pq;
  void operator()(PGresult* result) const { pq->clear(result); }
};
using Answer = std::unique_ptr<PGresult, CloseResult>;

struct CloseConnection {
  const Libpq* pq;
  void operator()(PGconn* connection) const { pq->finish(connection); }
};

std::string_view OneLine(std::string_view text) {
  return text.substr(0, std::min(text.find('\n'), text.size()));
}

class ServerRow : public Row {
 public:
  ServerRow(const Libpq& pq, const PGresult& result, int row) : pq_(pq), result_(result), row_(row) {}
  int64_t Int(int column) const override { return Number<int64_t>(column); }
  double Double(int column) const override { return Number<double>(column); }
  std::string Text(int column) const override { return std::string(View(column)); }

 private:
  std::string_view View(int column) const {
    return {pq_.value(&result_, row_, column), static_cast<size_t>(pq_.length(&result_, row_, column))};
  }
  template <typename T>
  T Number(int column) const {
    const std::string_view text = View(column);
    T value{};
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

  const Libpq& pq_;
  const PGresult& result_;
  int row_;
};

// Values as libpq takes them: texts that end with a zero.
class Arguments {
 public:
  explicit Arguments(const Values& values) {
    texts_.reserve(values.size());
    for (const Value& value : values)
      texts_.push_back(std::visit([](const auto& of) { return Text(of); }, value));
    for (const std::string& text : texts_) pointers_.push_back(text.c_str());
  }
  int count() const { return static_cast<int>(pointers_.size()); }
  const char* const* pointers() const { return pointers_.data(); }

 private:
  static std::string Text(int64_t value) { return fmt::format("{}", value); }
  static std::string Text(double value) { return fmt::format("{}", value); }
  static std::string Text(const std::string& value) {
    std::string mended = MendUtf8(value);
    std::erase(mended, '\0');
    return mended;
  }

  std::vector<std::string> texts_;
  std::vector<const char*> pointers_;
};

class Server : public Connection {
 public:
  Server(const Libpq& pq, PGconn* connection, std::string name)
      : pq_(pq), connection_(connection, {&pq}), name_(std::move(name)) {}

  Result<void> Ready() {
    if (pq_.status(connection_.get()) != CONNECTION_OK) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("cannot connect to '{}': {}", name_, OneLine(pq_.message(connection_.get()))),
                   "psql with the same address says whether it can be reached"};
    }
    pq_.set_notices(
        connection_.get(), [](void*, const char*) {}, nullptr);
    return RunScript("SET search_path TO fullbore; SET client_encoding TO 'UTF8'");
  }

  Result<bool> HasTable(const std::string& name) override {
    return Says("SELECT count(*) FROM pg_tables WHERE schemaname = 'fullbore' AND tablename = $1", {name});
  }
  Result<bool> IsEmpty() override {
    const auto some = Says("SELECT count(*) FROM pg_tables WHERE schemaname = 'fullbore'", {});
    return some ? Result<bool>(!*some) : some;
  }
  Result<bool> MayDelete(const std::string& table) override {
    return Says(
        "SELECT CASE WHEN has_table_privilege($1, 'DELETE') AND has_table_privilege($1, 'SELECT') "
        "THEN 1 ELSE 0 END",
        {"fullbore." + table});
  }

  Result<void> RunScript(const std::string& sql) override {
    const Answer answer(pq_.execute(connection_.get(), sql.c_str()), {&pq_});
    return Judge(answer.get());
  }

  Result<int64_t> Run(const std::string& sql, const Values& values) override {
    const Arguments with(values);
    const Answer answer(pq_.execute_with(connection_.get(), sql.c_str(), with.count(), nullptr,
                                         with.pointers(), nullptr, nullptr, 0),
                        {&pq_});
    if (auto done = Judge(answer.get()); !done) return done.error();
    const std::string_view changed = pq_.changed(answer.get());
    int64_t rows = 0;
    std::from_chars(changed.data(), changed.data() + changed.size(), rows);
    return rows;
  }

  // Row by row: an answer may be larger than the memory.
  Result<void> Query(const std::string& sql, const Values& values,
                     const std::function<void(const Row&)>& each) override {
    const Arguments with(values);
    if (pq_.send_with(connection_.get(), sql.c_str(), with.count(), nullptr, with.pointers(), nullptr,
                      nullptr, 0) == 0)
      return Judge(nullptr);
    pq_.row_by_row(connection_.get());
    Result<void> done;
    while (PGresult* const result = pq_.next(connection_.get())) {
      const Answer answer(result, {&pq_});
      if (auto judged = Judge(result); !judged && done) done = judged;
      for (int row = 0; done && row < pq_.rows_of(result); ++row) each(ServerRow(pq_, *result, row));
    }
    return done;
  }

  Result<void> Together(const std::function<Result<void>()>& work) override {
    constexpr int kAttempts = 5;
    for (int attempt = 1;; ++attempt) {
      state_.clear();
      Result<void> done = RunScript("BEGIN");
      if (done) done = work();
      if (done) done = RunScript("COMMIT");
      if (done) return done;
      const bool again = state_ == kSerialization || state_ == kDeadlock;
      (void)RunScript("ROLLBACK");
      if (!again || attempt == kAttempts) return done;
    }
  }

  Result<void> Alone(const std::function<Result<void>()>& work) override {
    return Together([&]() -> Result<void> {
      if (auto locked = RunScript(fmt::format("SELECT pg_advisory_xact_lock({})", kLock)); !locked)
        return locked;
      if (auto made = MakeSchema(); !made) return made;
      return work();
    });
  }

  Result<void> AtOneMoment(const std::function<Result<void>()>& work) override {
    if (auto begun = RunScript("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); !begun) return begun;
    Result<void> done = work();
    const auto ended = RunScript(done ? "COMMIT" : "ROLLBACK");
    return done ? ended : done;
  }

  std::string name() const override { return name_; }

 private:
  // IF NOT EXISTS would ask for the right to make it also where it is there.
  Result<void> MakeSchema() {
    const auto there = Says("SELECT count(*) FROM pg_namespace WHERE nspname = 'fullbore'", {});
    if (!there) return there.error();
    return *there ? Result<void>() : RunScript("CREATE SCHEMA fullbore");
  }

  Result<bool> Says(const std::string& sql, const Values& values) {
    bool yes = false;
    if (auto asked = Query(sql, values, [&](const Row& row) { yes = row.Int(0) > 0; }); !asked)
      return asked.error();
    return yes;
  }

  Result<void> Judge(const PGresult* result) {
    const ExecStatusType status = pq_.status_of(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_SINGLE_TUPLE) return {};
    const char* const state = pq_.field_of(result, PG_DIAG_SQLSTATE);
    state_ = state != nullptr ? state : "";
    const char* const why = pq_.field_of(result, PG_DIAG_MESSAGE_PRIMARY);
    const bool refused = state_ == kNotAllowed;
    return Error{
        refused          ? ErrorCode::kPermission
        : why == nullptr ? ErrorCode::kUnavailable
                         : ErrorCode::kIo,
        fmt::format("'{}': {}", name_, why != nullptr ? why : OneLine(pq_.message(connection_.get()))),
        refused ? "docs/fleet.md lists what a role that collects, and one that reads, must be granted" : ""};
  }

  const Libpq& pq_;
  std::unique_ptr<PGconn, CloseConnection> connection_;
  std::string name_, state_;  // state_: of the last error
};

}  // namespace

Result<std::unique_ptr<Connection>> ConnectServer(const std::string& url, Access access) {
  const auto pq = Libpq::Open();
  if (!pq) return pq.error();
  const char* const names[] = {"connect_timeout", "fallback_application_name", "dbname", nullptr};
  const char* const values[] = {kConnectTimeoutS, "fullbore", url.c_str(), nullptr};
  auto server = std::make_unique<Server>(**pq, (*pq)->connect(names, values, 1), MaskUrl(url));
  if (auto ready = server->Ready(); !ready) return ready.error();
  if (access == Access::kRead) {
    if (auto set = server->RunScript(kForReading); !set) return set.error();
  }
  return std::unique_ptr<Connection>(std::move(server));
}

}  // namespace fullbore::fleet::sql
