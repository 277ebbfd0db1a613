#include "loader/core/options_json.h"

#include <gmock/gmock.h>

namespace fullbore::loader {
namespace {

using testing::HasSubstr;

TEST(OptionsJson, SurvivesARoundTrip) {
  LoaderOptions options;
  options.source.paths = {"a b", "c"};
  options.source.memory_cache_bytes = 7;
  options.transforms = {
      RandomResizedCrop{.height = 224, .width = 192, .interpolation = Interpolation::kBicubic},
      ColorJitter{.hue = {-0.1, 0.1}}, Normalize{}};
  options.seed = 0xffffffffffffffff;
  options.pad_last = true;
  options.dtype = DType::kBFloat16;
  const std::string text = OptionsToJson(options);
  const auto back = OptionsFromJson(text);
  ASSERT_TRUE(back.ok()) << back.error().text;
  EXPECT_EQ(OptionsToJson(*back), text);
  EXPECT_EQ(back->seed, options.seed);
  EXPECT_EQ(std::get<RandomResizedCrop>(back->transforms[0]).width, 192);
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
