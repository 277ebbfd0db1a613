#include "fleet/sql/sql.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_directory.h"

namespace fullbore::fleet::sql {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class SqlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = Connect(directory_ / "a.db", Access::kWrite);
    ASSERT_TRUE(made.ok()) << ToString(made.error());
    connection_ = std::move(*made);
    ASSERT_TRUE(
        connection_->RunScript("CREATE TABLE t (n BIGINT PRIMARY KEY, x DOUBLE PRECISION, s TEXT)").ok());
  }

  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    EXPECT_TRUE(
        connection_
            ->Query("SELECT s FROM t ORDER BY n", {}, [&](const Row& row) { texts.push_back(row.Text(0)); })
            .ok());
    return texts;
  }

  ScratchDirectory directory_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(SqlTest, ValuesComeBackAsTheyWent) {
  ASSERT_TRUE(
      connection_->Run("INSERT INTO t VALUES ($1, $2, $3)", {int64_t{1} << 60, 0.1, "it's \"$1\""}).ok());
  int64_t number = 0;
  double fraction = 0;
  ASSERT_TRUE(connection_
                  ->Query("SELECT n, x FROM t WHERE s = $1", {"it's \"$1\""},
                          [&](const Row& row) {
                            number = row.Int(0);
                            fraction = row.Double(1);
                          })
                  .ok());
  EXPECT_EQ(number, int64_t{1} << 60);
  EXPECT_EQ(fraction, 0.1);
}

TEST_F(SqlTest, RowsThatAreThereAlreadyAreNotCounted) {
  const char* const add = "INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
  EXPECT_EQ(*connection_->Run(add, {int64_t{1}, 0.0, "a"}), 1);
  EXPECT_EQ(*connection_->Run(add, {int64_t{1}, 0.0, "b"}), 0);
  EXPECT_THAT(Texts(), ElementsAre("a"));
}

TEST_F(SqlTest, WorkThatFailsLeavesNothing) {
  const auto failed = connection_->Together([&]() -> Result<void> {
    const auto added = connection_->Run("INSERT INTO t VALUES ($1, $2, $3)", {int64_t{1}, 0.0, "a"});
    EXPECT_TRUE(added.ok());
    return Error{ErrorCode::kIo, "no more", ""};
  });
  EXPECT_EQ(failed.error().text, "no more");
  EXPECT_THAT(Texts(), ElementsAre());
}

TEST_F(SqlTest, WhatIsReadIsNotWritten) {
  auto reading = Connect(directory_ / "a.db", Access::kRead);
  ASSERT_TRUE(reading.ok());
  EXPECT_FALSE((*reading)->Run("INSERT INTO t VALUES ($1, $2, $3)", {int64_t{1}, 0.0, "a"}).ok());
  EXPECT_TRUE(*(*reading)->HasTable("t"));
  EXPECT_FALSE(*(*reading)->HasTable("u"));
}

TEST(SqlServerTest, OneThatDoesNotAnswerIsNamedWithoutItsSecrets) {
  EXPECT_TRUE(IsServer("postgresql://h/d"));
  EXPECT_FALSE(IsServer("postgresql.db"));
  const auto connection = Connect("postgresql://anna:planted@127.0.0.1:1/fleet", Access::kWrite);
  ASSERT_FALSE(connection.ok());
  EXPECT_THAT(connection.error().text, HasSubstr("127.0.0.1"));
  EXPECT_THAT(connection.error().text, Not(HasSubstr("planted")));
}

}  // namespace
}  // namespace fullbore::fleet::sql
