#include "loader/core/options/options_json.h"

#include <gmock/gmock.h>

namespace fullbore::loader {
namespace {

using testing::HasSubstr;

TEST(OptionsJson, TakesEachKindOfMember) {
  const auto options = OptionsFromJson(R"({
    "source": {"paths": ["a b", "c"], "memory_cache_bytes": 7, "timeout_s": 1.5},
    "transforms": [{"name": "RandomResizedCrop", "height": 224, "width": 192, "interpolation": "bicubic"},
                   {"name": "ColorJitter", "hue": [-0.1, 0.1]}],
    "seed": 18446744073709551615, "pad_last": true, "dtype": "bfloat16"})");
  ASSERT_TRUE(options.ok()) << options.error().text;
  EXPECT_THAT(options->source.paths, testing::ElementsAre("a b", "c"));
  EXPECT_EQ(options->source.memory_cache_bytes, 7u);
  EXPECT_EQ(options->source.timeout_s, 1.5);
  ASSERT_EQ(options->transforms.size(), 2u);
  const auto& crop = std::get<RandomResizedCrop>(options->transforms[0]);
  EXPECT_EQ(crop.width, 192);
  EXPECT_EQ(crop.interpolation, Interpolation::kBicubic);
  EXPECT_EQ(std::get<ColorJitter>(options->transforms[1]).hue[0], -0.1);
  EXPECT_EQ(options->seed, 0xffffffffffffffff);
  EXPECT_TRUE(options->pad_last);
  EXPECT_EQ(options->dtype, DType::kBFloat16);
  EXPECT_EQ(options->batch_size, LoaderOptions{}.batch_size);
}

TEST(OptionsJson, NamesAMistypedOption) {
  const auto options = OptionsFromJson(R"({"bacth_size": 3})");
  ASSERT_FALSE(options.ok());
  EXPECT_THAT(options.error().text, HasSubstr("bacth_size"));
}

TEST(OptionsJson, NamesAnOptionOfTheSourceLikeAnyOther) {
  const auto options = OptionsFromJson(R"({"source": {"retries": "many"}})");
  ASSERT_FALSE(options.ok());
  EXPECT_THAT(options.error().text, testing::StartsWith("retries cannot be \"many\""));
}

TEST(OptionsJson, NamesTheTransformAndTheInvalidValue) {
  const auto type = OptionsFromJson(R"({"transforms": [{"name": "Resize", "height": "big"}]})");
  ASSERT_FALSE(type.ok());
  EXPECT_THAT(type.error().text, HasSubstr("transforms[0].height cannot be \"big\""));
  const auto name = OptionsFromJson(R"({"transforms": [{"name": "Resise"}]})");
  ASSERT_FALSE(name.ok());
  EXPECT_THAT(name.error().hint, HasSubstr("RandomResizedCrop"));
  const auto choice = OptionsFromJson(R"({"layout": "chwn"})");
  ASSERT_FALSE(choice.ok());
  EXPECT_THAT(choice.error().hint, HasSubstr("nhwc"));
}

TEST(OptionsJson, RefusesNumbersThatWouldBecomeOthers) {
  for (const char* wrong :
       {R"({"seed": -1})", R"({"source": {"cache_bytes": -1}})", R"({"threads": 4294967297})",
        R"({"nice": -4294967296})", R"({"batch_size": 9223372036854775808})"}) {
    const auto options = OptionsFromJson(wrong);
    ASSERT_FALSE(options.ok()) << wrong;
    EXPECT_THAT(options.error().text, HasSubstr("cannot be"));
    EXPECT_THAT(options.error().hint, HasSubstr("a whole number"));
  }
  const auto options = OptionsFromJson(R"({"nice": -5, "seed": 18446744073709551615})");
  ASSERT_TRUE(options.ok()) << options.error().text;
  EXPECT_EQ(options->nice, -5);
}

TEST(OptionsJson, TakesAnythingWithoutCrashing) {
  for (const char* text :
       {"", "3", "[]", "{\"source\": 3}", "{\"transforms\": {\"a\": 1}}", "{\"seed\": -1.5}", "{"}) {
    (void)OptionsFromJson(text);
  }
}

}  // namespace
}  // namespace fullbore::loader
