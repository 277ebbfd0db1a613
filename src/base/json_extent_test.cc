#include "base/json_extent.h"

#include <gtest/gtest.h>

#include <string>

namespace fullbore {
namespace {

int DepthOf(const std::string& text) { return ExtentOfJson(text).depth; }
size_t ValuesOf(const std::string& text) { return ExtentOfJson(text).values; }

TEST(ExtentOfJsonTest, DepthIsOfListsAndObjects) {
  EXPECT_EQ(DepthOf("7"), 0);
  EXPECT_EQ(DepthOf(R"([1, {"a": {}}, []])"), 3);
  EXPECT_EQ(DepthOf(std::string(100'000, '[')), 100'000);
}

TEST(ExtentOfJsonTest, ValuesAreNoFewerThanThereAre) {
  EXPECT_GE(ValuesOf("7"), 1U);
  EXPECT_GE(ValuesOf("[1, 2, 3]"), 4U);
  EXPECT_GE(ValuesOf(R"({"a": 1, "b": [2]})"), 6U) << "with the names";
  EXPECT_LT(ValuesOf("[1, 2, 3]"), 8U);
}

TEST(ExtentOfJsonTest, WhatStandsInATextIsNothing) {
  EXPECT_EQ(DepthOf(R"("[[[")"), 0);
  EXPECT_EQ(DepthOf(R"(["\"[[", "\\", [1]])"), 2);
  EXPECT_EQ(ValuesOf(R"("a,b,c:d")"), ValuesOf(R"("")"));
}

TEST(ExtentOfJsonTest, ATextThatBreaksOffIsRead) {
  for (const char* broken : {"", "\"", "\"\\", "[\"\\\"", "]]", "}["})
    EXPECT_LE(DepthOf(broken), 1) << broken;
}

}  // namespace
}  // namespace fullbore
