// Decoding alone, against a bare libjpeg-turbo loop that does the same work: whole images, regions as
// RandomResizedCrop draws them, and images scaled down in the DCT. Both decode each image in turn, so that
// other load on the machine hits both; `of_bare` is the median over the passes of bare time / our time.
//
//   examples/make_photos.py /tmp/photos --count 64
//   FULLBORE_PHOTOS=/tmp/photos build/release/bench/decode_bench
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

// After <cstdio>: it uses FILE without including it.
#include <jpeglib.h>

#include "base/clock.h"
#include "loader/core/image/image.h"

namespace {

using fullbore::ThreadCpuNs;
using fullbore::loader::DecodeRequest;
using fullbore::loader::ImageDecoder;
using fullbore::loader::Pixels;
using fullbore::loader::Rect;

struct Job {
  std::vector<uint8_t> encoded;
  Rect region;
};

// Without anything that makes a decoder safe: errors end the program.
class BareLoop {
 public:
  BareLoop() {
    info_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&info_);
  }
  ~BareLoop() { jpeg_destroy_decompress(&info_); }
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;

  void Decode(const Job& job, int scale) {
    jpeg_mem_src(&info_, job.encoded.data(), job.encoded.size());
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
    info_.scale_denom = static_cast<unsigned>(scale);
    jpeg_start_decompress(&info_);
    const auto down = static_cast<JDIMENSION>(scale);
    JDIMENSION left = static_cast<JDIMENSION>(job.region.x) / down;
    JDIMENSION width =
        std::min(static_cast<JDIMENSION>(job.region.width) / down + 1, info_.output_width - left);
    const JDIMENSION top = static_cast<JDIMENSION>(job.region.y) / down;
    const JDIMENSION bottom =
        std::min(info_.output_height, static_cast<JDIMENSION>(job.region.y + job.region.height) / down + 1);
    if (width < info_.output_width) jpeg_crop_scanline(&info_, &left, &width);
    if (top > 0) jpeg_skip_scanlines(&info_, top);
    const size_t stride = size_t{width} * 3;
    if (rows_.size() < stride * (bottom - top)) rows_.resize(stride * (bottom - top));
    while (info_.output_scanline < bottom) {
      JSAMPROW row = rows_.data() + (info_.output_scanline - top) * stride;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    benchmark::DoNotOptimize(rows_.data());
    jpeg_abort_decompress(&info_);
  }

 private:
  jpeg_decompress_struct info_;
  jpeg_error_mgr errors_;
  std::vector<uint8_t> rows_;
};

std::vector<Job> Photos(bool regions) {
  std::vector<Job> jobs;
  const char* directory = std::getenv("FULLBORE_PHOTOS");
  if (directory == nullptr) return jobs;
  std::mt19937 random(1);
  ImageDecoder decoder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.path().extension() != ".jpg" || jobs.size() == 64) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    Job job{{std::istreambuf_iterator<char>(file), {}}, {}};
    const auto info = decoder.ReadInfo(job.encoded, UINT64_MAX);
    if (!info) continue;
    job.region = {0, 0, info->width, info->height};
    if (regions) {  // 8 to 100 % of the area, nearly square
      const double share = std::uniform_real_distribution<double>(0.08, 1)(random);
      const double side = std::sqrt(share * info->width * info->height);
      job.region.width = std::min(info->width, static_cast<int>(side));
      job.region.height = std::min(info->height, static_cast<int>(side));
      job.region.x = std::uniform_int_distribution<int>(0, info->width - job.region.width)(random);
      job.region.y = std::uniform_int_distribution<int>(0, info->height - job.region.height)(random);
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void Run(benchmark::State& state, bool regions, int scale) {
  const std::vector<Job> jobs = Photos(regions);
  if (jobs.empty()) {
    state.SkipWithError("FULLBORE_PHOTOS names no directory with JPEGs (examples/make_photos.py makes some)");
    return;
  }
  BareLoop bare;
  ImageDecoder decoder;
  Pixels pixels;
  std::vector<double> ratios;
  for (auto _ : state) {
    int64_t bare_ns = 0, our_ns = 0;
    for (const Job& job : jobs) {
      // Ours between two bare ones: whoever comes first finds the file's bytes outside the cache.
      const int64_t start = ThreadCpuNs();
      bare.Decode(job, scale);
      const int64_t first = ThreadCpuNs();
      bool ok = true;
      for (int twice = 0; twice < 2; ++twice) {
        ok = ok && decoder.ReadInfo(job.encoded, UINT64_MAX).ok() &&
             decoder.Decode({.region = job.region, .max_scale = scale}, pixels).ok();
      }
      const int64_t second = ThreadCpuNs();
      bare.Decode(job, scale);
      const int64_t end = ThreadCpuNs();
      if (!ok) state.SkipWithError("an image does not decode");
      bare_ns += (first - start) + (end - second);
      our_ns += second - first;
    }
    ratios.push_back(static_cast<double>(bare_ns) / static_cast<double>(our_ns));
    state.SetIterationTime(static_cast<double>(our_ns) / 2e9);
  }
  if (ratios.empty()) return;
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2),
                   ratios.end());
  state.counters["of_bare"] = ratios[ratios.size() / 2];
  state.SetItemsProcessed(static_cast<int64_t>(jobs.size()) * state.iterations());
}

BENCHMARK_CAPTURE(Run, whole, false, 1)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Run, regions, true, 1)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Run, whole_at_half, false, 2)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Run, regions_at_half, true, 2)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Run, whole_at_quarter, false, 4)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
