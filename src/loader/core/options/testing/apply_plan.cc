// Applies image plans to files, for tests that compare the pixels with another implementation's: reads one
// job a line, {"image": PATH, "out": PATH, "sample": N, "options": {LoaderOptions as JSON}}, writes the row's
// raw bytes to `out` and answers with a line: its shape, what was drawn, and how long it took. With "repeat":
// n the times are medians over as many samples from there on, by one worker; the row is the last one's.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "base/overloaded.h"
#include "loader/core/options/options_json.h"
#include "loader/core/transform/color_jitter.h"
#include "loader/core/transform/image_plan.h"
#include "loader/core/transform/kind.h"
#include "loader/core/transform/orientation.h"
#include "loader/core/transform/random_horizontal_flip.h"
#include "loader/core/transform/random_resized_crop.h"
#include "loader/core/transform/random_rotation.h"

namespace fullbore::loader {
namespace {

using nlohmann::json;

std::vector<uint8_t> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

json Steps(const JitterDraw& drawn) {
  constexpr const char* kNames[] = {"brightness", "contrast", "saturation", "hue"};
  json steps = json::array();
  for (const JitterKind kind : drawn.order) {
    const auto at = static_cast<size_t>(kind);
    if (drawn.factors[at]) steps.push_back({kNames[at], *drawn.factors[at]});
  }
  return steps;
}

json DrawnBy(const Transform& transform, Size size, const Draws& draws) {
  json drawn = {{"name", NameOf(transform)}};
  std::visit(
      Overloaded{[&](const RandomResizedCrop& crop) {
                   const Rect rect = DrawCrop(crop, size, draws);
                   drawn["box"] = {rect.x, rect.y, rect.width, rect.height};
                 },
                 [&](const RandomHorizontalFlip& flip) { drawn["flips"] = DrawFlip(flip, draws); },
                 [&](const RandomRotation& rotation) { drawn["degrees"] = DrawAngle(rotation, draws); },
                 [&](const ColorJitter& jitter) { drawn["steps"] = Steps(DrawJitter(jitter, draws)); },
                 [](const OneOf<Resize, CenterCrop, Normalize> auto&) {}},
      transform);
  return drawn;
}

json DrawnFor(const LoaderOptions& options, Size size, SampleSeed seed) {
  json drawn = json::array();
  for (size_t i = 0; i < options.transforms.size(); ++i) {
    drawn.push_back(DrawnBy(options.transforms[i], size, Draws(seed, options.transforms, i)));
    size = SizeAfter(options.transforms[i], size);
  }
  return drawn;
}

uint64_t MedianOf(std::vector<uint64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Result<json> RunJob(const json& job) {
  auto options = OptionsFromJson(job.at("options").dump());
  if (!options.ok()) return options.error();
  auto plan = ImagePlan::Compile(options->transforms, {options->dtype, options->layout, options->image_mode,
                                                       options->apply_exif_orientation, options->fast_dct,
                                                       options->scaled_decode, options->max_image_pixels});
  if (!plan.ok()) return plan.error();
  const std::vector<uint8_t> encoded = ReadWhole(job.at("image"));
  auto info = ImageDecoder().ReadInfo(encoded, options->max_image_pixels);
  if (!info.ok()) return info.error();
  auto shape = plan->ShapeOf(*info);
  if (!shape.ok()) return shape.error();

  size_t bytes = BytesOf(plan->dtype());
  for (const int64_t side : *shape) bytes *= static_cast<size_t>(side);
  std::vector<char> row(bytes);
  const uint64_t repeat = job.value("repeat", 1), last = job.at("sample").get<uint64_t>() + repeat - 1;
  std::vector<uint64_t> decode_ns, transform_ns;
  ImagePlan::Worker worker(*plan);
  for (uint64_t sample = last + 1 - repeat; sample <= last; ++sample) {
    ImageTimes times;
    const SampleSeed its_seed = SampleSeed::Of(options->seed, 0, sample);
    if (auto run = worker.Run(encoded, its_seed, *shape, row.data(), times); !run.ok()) return run.error();
    decode_ns.push_back(times.decode_ns);
    transform_ns.push_back(times.transform_ns);
  }
  const SampleSeed seed = SampleSeed::Of(options->seed, 0, last);
  std::ofstream(job.at("out").get<std::string>(), std::ios::binary)
      .write(row.data(), static_cast<std::streamsize>(row.size()));
  const int orientation = options->apply_exif_orientation ? info->orientation : 1;
  return json{{"shape", *shape},
              {"drawn", DrawnFor(*options, UprightSize({info->width, info->height}, orientation), seed)},
              {"decode_ns", MedianOf(decode_ns)},
              {"transform_ns", MedianOf(transform_ns)}};
}

int Main() {
  for (std::string line; std::getline(std::cin, line);) {
    auto answer = RunJob(json::parse(line));
    std::cout << (answer.ok() ? *answer : json{{"error", ToString(answer.error())}}).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace fullbore::loader

int main() { return fullbore::loader::Main(); }
