#include "base/host_name.h"

#include <gtest/gtest.h>

namespace fullbore {
namespace {

// By Python's codec "punycode"; the last is also RFC 3492's own (7.1, B).
TEST(HostNameTest, IsWhatDnsKnowsItAs) {
  EXPECT_EQ(WithAsciiHost("https://München.example/x"), "https://xn--mnchen-3ya.example/x");
  EXPECT_EQ(WithAsciiHost("http://a.straße.bücher.de:80"), "http://a.xn--strae-oqa.xn--bcher-kva.de:80");
  EXPECT_EQ(WithAsciiHost("http://mu\u0308ller.de?x=ü"), "http://xn--mller-kva.de?x=ü");
  EXPECT_EQ(WithAsciiHost("http://例え.テスト/"), "http://xn--r8jz45g.xn--zckzah/");
  EXPECT_EQ(WithAsciiHost("http://他们为什么不说中文"), "http://xn--ihqwcrb4cv8a8dqg056pqjye");
}

TEST(HostNameTest, LeavesAllElse) {
  for (const char* url : {"https://host.example/ü?é=1", "http://ü:pass@host/x", "http://[::1]:80/ü",
                          "/a/ü://b", "ü", "", "http://", "http://\xff.de/x"}) {
    EXPECT_EQ(WithAsciiHost(url), url);
  }
}

TEST(HostNameTest, LeavesALabelThatIsTooLong) {
  std::string label;
  for (int i = 0; i < 64; ++i) label += "ü";
  EXPECT_EQ(WithAsciiHost("http://" + label), "http://" + label);
}

}  // namespace
}  // namespace fullbore
