#include "measure/collect/device_window.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"

namespace fullbore::collect {
namespace {

std::string Unpacked(const std::string& packed) {
  std::string raw(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  raw.resize(ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size()));
  return raw;
}

class DeviceWindowTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = directory.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  TemporaryDirectory directory = std::move(*TemporaryDirectory::Make());
};

TEST_F(DeviceWindowTest, ATraceIsCompressedAndItsFileRemoved) {
  const std::string path = Write("7-window32.json", R"({"traceEvents": []})");

  const auto window = TakeDeviceWindow(directory.path(), {"7-window32.json", 32, 4});

  ASSERT_TRUE(window.ok()) << window.error().text;
  EXPECT_EQ(window->first_step, 32);
  EXPECT_EQ(window->steps, 4);
  EXPECT_EQ(Unpacked(window->trace), R"({"traceEvents": []})");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(DeviceWindowTest, NothingOutsideTheChannelIsReadOrRemoved) {
  const std::string path = Write("mine.json", "{}");

  for (const std::string& name : {path, std::string("../mine.json"), std::string("."), std::string()}) {
    const auto window = TakeDeviceWindow(directory.path() + "/channel", {name, 0, 1});
    ASSERT_FALSE(window.ok()) << name;
    EXPECT_NE(window.error().text.find("not the name of a file in the channel"), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(DeviceWindowTest, AMissingTraceIsAnErrorThatNamesIt) {
  const auto window = TakeDeviceWindow(directory.path(), {"gone.json", 0, 1});

  ASSERT_FALSE(window.ok());
  EXPECT_NE(window.error().text.find("gone.json"), std::string::npos) << window.error().text;
}

}  // namespace
}  // namespace fullbore::collect
