#include "loader/core/image/exif.h"

#include <gtest/gtest.h>

#include <string>

namespace fullbore::loader {
namespace {

using namespace std::string_literals;

int Orientation(const std::string& tiff) {
  return TiffOrientation({reinterpret_cast<const uint8_t*>(tiff.data()), tiff.size()});
}

const std::string kLittle = "II*\0\x08\0\0\0"s;
const std::string kOneEntry = "\x01\0"s;

TEST(ExifTest, ReadsBothByteOrdersAndTheTypesThatWritersUse) {
  EXPECT_EQ(Orientation(kLittle + kOneEntry + "\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s), 6);
  EXPECT_EQ(Orientation("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0"s), 8);
  EXPECT_EQ(Orientation(kLittle + kOneEntry + "\x12\x01\x04\0\x01\0\0\0\x03\0\0\0"s), 3);  // LONG
  EXPECT_EQ(Orientation(kLittle + kOneEntry + "\x12\x01\x01\0\x01\0\0\0\x02\0\0\0"s), 2);  // BYTE
}

TEST(ExifTest, FindsTheTagBehindOthers) {
  const std::string other = "\x0F\x01\x02\0\x04\0\0\0abc\0"s;
  EXPECT_EQ(Orientation(kLittle + "\x02\0"s + other + "\x12\x01\x03\0\x01\0\0\0\x05\0\0\0"s), 5);
}

TEST(ExifTest, WhatIsDamagedIsThePlainOrientation) {
  const std::string good = kLittle + kOneEntry + "\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s;
  for (size_t size = 0; size < good.size(); ++size) EXPECT_EQ(Orientation(good.substr(0, size)), 1);
  EXPECT_EQ(Orientation(kLittle + kOneEntry + "\x12\x01\x03\0\x01\0\0\0\x09\0\0\0"s), 1);  // 9
  EXPECT_EQ(Orientation(kLittle + kOneEntry + "\x12\x01\x05\0\x01\0\0\0\x06\0\0\0"s), 1);  // RATIONAL
  EXPECT_EQ(Orientation("II*\0\xFF\xFF\xFF\xFF"s + good), 1);  // a directory outside
  EXPECT_EQ(Orientation(kLittle + "\xFF\xFF"s), 1);            // 65,535 entries that are not there
}

TEST(ExifTest, AJpegSegmentWithoutExifsMarkHasNone) {
  const std::string xmp = "http://ns.adobe.com/xap/1.0/\0<x/>"s;
  EXPECT_EQ(ExifOrientation({reinterpret_cast<const uint8_t*>(xmp.data()), xmp.size()}), 0);
}

}  // namespace
}  // namespace fullbore::loader
