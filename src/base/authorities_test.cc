#include "base/authorities.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "FULLBORE_TEST_AUTHORITIES";

class AuthoritiesTest : public testing::Test {
 protected:
  ~AuthoritiesTest() override { unsetenv(kVariable); }
  std::string root() const { return directory_->path(); }
  void Add(const std::string& place) {
    fs::create_directories(fs::path(root() + place).parent_path());
    std::ofstream(root() + place) << "x";
  }
  std::string Found() const { return AuthoritiesPath({"FULLBORE_TEST_NOTHING", kVariable}, root()); }

  Result<TemporaryDirectory> directory_ = TemporaryDirectory::Make();
};

TEST_F(AuthoritiesTest, AreWhereTheVariableSaysBeforeAnyOther) {
  Add("/etc/ssl/certs/ca-certificates.crt");
  setenv(kVariable, "/mine.pem", 1);
  EXPECT_EQ(Found(), "/mine.pem");
  setenv(kVariable, "", 1);
  EXPECT_EQ(Found(), root() + "/etc/ssl/certs/ca-certificates.crt");
}

TEST_F(AuthoritiesTest, AreWhereTheDistributionHasThem) {
  EXPECT_EQ(Found(), "");
  Add("/etc/ssl/ca-bundle.pem");
  EXPECT_EQ(Found(), root() + "/etc/ssl/ca-bundle.pem");
  Add("/etc/pki/tls/certs/ca-bundle.crt");
  EXPECT_EQ(Found(), root() + "/etc/pki/tls/certs/ca-bundle.crt");
}

}  // namespace
}  // namespace fullbore
