// The ceiling: what a loader's work costs when there is no loader. Threads that each take the next image,
// read it, decode the region they need, resize with antialiasing, mirror, normalise and write the row of a
// batch; no queues, no hand-over, no Python. Written independently of src/loader, so that it can judge it.
//
//   ceiling DIR|SHARDS... --threads N --seconds S [--kind image|text|image-tar|text-tar] [--check FILE]
//
// Prints one JSON line, like every contender of run.py. --check writes the first 64 images, resized whole to
// 224x224 without randomness, as raw float32.
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

// After <cstdio>: jpeglib.h uses FILE without including it.
#include <jpeglib.h>

namespace {

constexpr int kSide = 224, kBatch = 64;
constexpr size_t kTextBytes = 65536;
constexpr float kMean[3] = {0.485f, 0.456f, 0.406f}, kStd[3] = {0.229f, 0.224f, 0.225f};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

[[noreturn]] void Fail(const std::string& text) {
  std::fprintf(stderr, "ceiling: %s\n", text.c_str());
  std::exit(1);
}

struct Sample {
  std::string path;
  uint64_t offset = 0, bytes = 0;
};

// The members of a tar file with one of the wanted endings; ustar headers only, which is what make_data.py
// writes.
void IndexTar(const std::string& path, const std::string& ending, std::vector<Sample>& samples) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) Fail("cannot open " + path);
  char header[512];
  uint64_t at = 0;
  while (pread(fd, header, sizeof header, static_cast<off_t>(at)) == sizeof header && header[0] != 0) {
    uint64_t bytes = std::strtoull(header + 124, nullptr, 8);
    if (std::string(header).ends_with(ending)) samples.push_back({path, at + 512, bytes});
    at += 512 + (bytes + 511) / 512 * 512;
  }
  close(fd);
}

std::vector<Sample> List(const std::vector<std::string>& roots, const std::string& ending) {
  std::vector<Sample> samples;
  for (const std::string& root : roots) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      std::string path = entry.path().string();
      if (path.ends_with(".tar"))
        IndexTar(path, ending, samples);
      else if (path.ends_with(ending))
        samples.push_back({path, 0, 0});
    }
  }
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    return std::pair(a.path, a.offset) < std::pair(b.path, b.offset);
  });
  if (samples.empty()) Fail("nothing that ends in " + ending);
  return samples;
}

// One thread's open shard and read buffer.
class Reader {
 public:
  ~Reader() {
    if (fd_ >= 0) close(fd_);
  }
  size_t Read(const Sample& sample, std::vector<uint8_t>& out) {
    bool whole_file = sample.bytes == 0;
    if (whole_file || sample.path != path_) {
      if (fd_ >= 0) close(fd_);
      fd_ = open(sample.path.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd_ < 0) Fail("cannot open " + sample.path);
      path_ = sample.path;
    }
    size_t bytes = sample.bytes;
    if (whole_file) {
      struct stat status;
      fstat(fd_, &status);
      bytes = static_cast<size_t>(status.st_size);
    }
    if (out.size() < bytes) out.resize(bytes);
    for (size_t done = 0; done < bytes;) {
      ssize_t got = pread(fd_, out.data() + done, bytes - done, static_cast<off_t>(sample.offset + done));
      if (got <= 0) Fail("cannot read " + sample.path);
      done += static_cast<size_t>(got);
    }
    return bytes;
  }

 private:
  int fd_ = -1;
  std::string path_;
};

struct Box {
  double x, y, width, height;
};

// torchvision's RandomResizedCrop with its defaults.
Box RandomCrop(int width, int height, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  for (int attempt = 0; attempt < 10; ++attempt) {
    double area = width * double(height) * (0.08 + 0.92 * unit(random));
    double ratio = std::exp(std::log(3.0 / 4) + unit(random) * (std::log(4.0 / 3) - std::log(3.0 / 4)));
    double w = std::round(std::sqrt(area * ratio)), h = std::round(std::sqrt(area / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    return {std::floor(unit(random) * (width - w + 1)), std::floor(unit(random) * (height - h + 1)), w, h};
  }
  return {0, 0, double(width), double(height)};
}

// Weights of a triangle filter that widens with the reduction, like Pillow's BILINEAR.
struct Taps {
  std::vector<int> first, count;
  std::vector<float> weights;  // `stride` of them per output
  int stride = 0;

  void Make(double begin, double length, int limit) {
    double scale = length / kSide, support = std::max(scale, 1.0);
    stride = static_cast<int>(std::ceil(support)) * 2 + 1;
    first.assign(kSide, 0);
    count.assign(kSide, 0);
    weights.assign(static_cast<size_t>(kSide * stride), 0);
    for (int out = 0; out < kSide; ++out) {
      double centre = begin + (out + 0.5) * scale;
      // Pillow sees only the crop: the filter does not reach beyond it.
      int low = std::max(static_cast<int>(centre - support + 0.5), static_cast<int>(std::floor(begin)));
      int high = std::min(
          {static_cast<int>(centre + support + 0.5), static_cast<int>(std::ceil(begin + length)), limit});
      float total = 0, *w = &weights[static_cast<size_t>(out * stride)];
      for (int i = low; i < high; ++i) {
        w[i - low] = static_cast<float>(std::max(0.0, 1 - std::abs((i + 0.5 - centre) / support)));
        total += w[i - low];
      }
      for (int i = low; i < high; ++i) w[i - low] /= total;
      first[static_cast<size_t>(out)] = low;
      count[static_cast<size_t>(out)] = high - low;
    }
  }
};

// One thread's decoder and resizer.
class Imager {
 public:
  Imager() {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr) { Fail("a JPEG does not decode"); };
    errors_.emit_message = [](j_common_ptr, int) {};
    jpeg_create_decompress(&jpeg_);
  }
  ~Imager() { jpeg_destroy_decompress(&jpeg_); }

  void Run(const uint8_t* data, size_t bytes, bool random_crop, std::mt19937_64& random, float* out) {
    jpeg_mem_src(&jpeg_, data, bytes);
    jpeg_read_header(&jpeg_, TRUE);
    jpeg_.out_color_space = JCS_RGB;
    int full_width = static_cast<int>(jpeg_.image_width), full_height = static_cast<int>(jpeg_.image_height);
    Box box{0, 0, double(full_width), double(full_height)};
    bool mirror = false;
    if (random_crop) {
      box = RandomCrop(full_width, full_height, random);
      mirror = random() & 1;
    }

    // The same margins as the loader's rule, so that both do the same work.
    const double shrinks = std::min(box.width, box.height) / kSide;
    const unsigned scale = shrinks >= 20 ? 8 : shrinks >= 10 ? 4 : shrinks >= 4 ? 2 : 1;
    jpeg_.scale_num = 1;
    jpeg_.scale_denom = scale;
    box = {box.x / scale, box.y / scale, box.width / scale, box.height / scale};
    Decode(box);
    columns_.Make(box.x, box.width, width_);
    rows_.Make(box.y, box.height, height_);
    Resize(mirror, out);
  }

 private:
  // Fills pixels_ with the rows from top_ and the columns from left_ that the box needs.
  void Decode(const Box& box) {
    jpeg_start_decompress(&jpeg_);
    width_ = static_cast<int>(jpeg_.output_width);
    height_ = static_cast<int>(jpeg_.output_height);
    JDIMENSION x = static_cast<JDIMENSION>(box.x);
    JDIMENSION w = static_cast<JDIMENSION>(std::min(std::ceil(box.x + box.width), double(width_))) - x;
    jpeg_crop_scanline(&jpeg_, &x, &w);
    left_ = static_cast<int>(x);
    top_ = static_cast<int>(box.y);
    int end = std::min(static_cast<int>(std::ceil(box.y + box.height)), height_);
    stride_ = jpeg_.output_width * 3;
    size_t needed = stride_ * static_cast<size_t>(end - top_) + 16;
    if (pixels_.size() < needed) pixels_.resize(needed);
    if (top_ > 0) jpeg_skip_scanlines(&jpeg_, static_cast<JDIMENSION>(top_));
    while (static_cast<int>(jpeg_.output_scanline) < end) {
      JSAMPROW lines[4];
      int at = static_cast<int>(jpeg_.output_scanline) - top_, wanted = std::min(4, end - top_ - at);
      for (int i = 0; i < wanted; ++i) lines[i] = pixels_.data() + stride_ * static_cast<size_t>(at + i);
      jpeg_read_scanlines(&jpeg_, lines, static_cast<JDIMENSION>(wanted));
    }
    jpeg_abort_decompress(&jpeg_);
  }

  void Resize(bool mirror, float* out) {
    line_.resize(stride_ + 32);
    for (int y = 0; y < kSide; ++y) {
      ReduceRows(y);
      WriteRow(y, mirror, out);
    }
  }

  // line_ = the weighted sum of the rows that output row y covers.
  void ReduceRows(int y) {
    size_t row = static_cast<size_t>(y);
    const float* weights = &rows_.weights[row * static_cast<size_t>(rows_.stride)];
    const uint8_t* source = pixels_.data() + stride_ * static_cast<size_t>(rows_.first[row] - top_);
    int count = rows_.count[row];
    for (size_t i = 0; i < stride_; i += 8) {
      __m256 sum = _mm256_setzero_ps();
      const uint8_t* at = source + i;
      for (int k = 0; k < count; ++k, at += stride_) {
        __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
        sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(wide), _mm256_set1_ps(weights[k]), sum);
      }
      _mm256_storeu_ps(&line_[i], sum);
    }
  }

  __m128 Pixel(int x) const {
    size_t column = static_cast<size_t>(x);
    const float* weights = &columns_.weights[column * static_cast<size_t>(columns_.stride)];
    const float* at = &line_[static_cast<size_t>(columns_.first[column] - left_) * 3];
    __m128 sum = _mm_setzero_ps();
    for (int k = 0; k < columns_.count[column]; ++k, at += 3)
      sum = _mm_fmadd_ps(_mm_loadu_ps(at), _mm_set1_ps(weights[k]), sum);
    return sum;
  }

  void WriteRow(int y, bool mirror, float* out) {
    const __m128 factor = _mm_setr_ps(1 / (255 * kStd[0]), 1 / (255 * kStd[1]), 1 / (255 * kStd[2]), 0);
    const __m128 shift = _mm_setr_ps(-kMean[0] / kStd[0], -kMean[1] / kStd[1], -kMean[2] / kStd[2], 0);
    float* planes = out + y * kSide;
    for (int x = 0; x < kSide; x += 4) {
      __m128 p[4];
      for (int i = 0; i < 4; ++i)
        p[i] = _mm_fmadd_ps(Pixel(mirror ? kSide - 1 - x - i : x + i), factor, shift);
      _MM_TRANSPOSE4_PS(p[0], p[1], p[2], p[3]);
      for (int c = 0; c < 3; ++c) _mm_storeu_ps(planes + c * kSide * kSide + x, p[c]);
    }
  }

  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  std::vector<uint8_t> pixels_;
  std::vector<float> line_;
  Taps columns_, rows_;
  size_t stride_ = 0;
  int width_ = 0, height_ = 0, left_ = 0, top_ = 0;
};

struct Work {
  std::vector<Sample> samples;
  bool text = false;
  std::atomic<uint64_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  double begin = 0;
  std::atomic<double> first_batch{0};
};

void* Thread(void* argument) {
  Work& work = *static_cast<Work*>(argument);
  size_t row_bytes = work.text ? kTextBytes : sizeof(float) * 3 * kSide * kSide;
  std::vector<uint8_t> batch(row_bytes * kBatch), encoded;
  Reader reader;
  Imager imager;
  for (uint64_t row = 0; !work.stop; row = (row + 1) % kBatch) {
    uint64_t index = work.next++, size = work.samples.size();
    // A new order each epoch: a random start and a stride that is coprime to the size.
    std::mt19937_64 random(index / size * 2654435761u + 1);
    uint64_t stride = 1 + random() % size;
    while (std::gcd(stride, size) != 1) ++stride;
    const Sample& sample = work.samples[(random() + index % size * stride) % size];
    size_t bytes = reader.Read(sample, encoded);
    uint8_t* out = batch.data() + row * row_bytes;
    std::mt19937_64 own(index);
    if (work.text)
      std::memcpy(out, encoded.data(), std::min(bytes, kTextBytes));
    else
      imager.Run(encoded.data(), bytes, true, own, reinterpret_cast<float*>(out));
    if (++work.done == kBatch) work.first_batch = Now();
  }
  return nullptr;
}

void Check(const Work& work, const std::string& path) {
  std::vector<float> out(static_cast<size_t>(kBatch) * 3 * kSide * kSide);
  std::vector<uint8_t> encoded;
  Reader reader;
  Imager imager;
  std::mt19937_64 random;
  for (size_t i = 0; i < kBatch && i < work.samples.size(); ++i) {
    size_t bytes = reader.Read(work.samples[i], encoded);
    imager.Run(encoded.data(), bytes, false, random, &out[i * 3 * kSide * kSide]);
  }
  FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(out.data(), sizeof(float), out.size(), file) != out.size() ||
      std::fclose(file) != 0)
    Fail("cannot write " + path);
}

double PeakMegabytes() {
  FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  double kilobytes = 0;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr)
    if (std::sscanf(line, "VmHWM: %lf", &kilobytes) == 1) break;
  if (file != nullptr) std::fclose(file);
  return kilobytes / 1024;
}

}  // namespace

int main(int count, char** arguments) {
  Work work;
  work.begin = Now();
  std::vector<std::string> roots;
  std::string kind = "image", check;
  int threads = 1;
  double seconds = 4;
  for (int i = 1; i < count; ++i) {
    std::string argument = arguments[i];
    bool has_value = argument.starts_with("--");
    if (has_value && i + 1 == count) Fail(argument + " needs a value");
    if (argument == "--threads")
      threads = std::atoi(arguments[++i]);
    else if (argument == "--seconds")
      seconds = std::atof(arguments[++i]);
    else if (argument == "--kind")
      kind = arguments[++i];
    else if (argument == "--check")
      check = arguments[++i];
    else if (has_value)
      Fail("unknown argument " + argument);
    else
      roots.push_back(argument);
  }
  if (roots.empty() || threads < 1) Fail("usage: ceiling DIR... --threads N --seconds S");
  work.text = kind.starts_with("text");
  work.samples = List(roots, work.text ? ".txt" : ".jpg");
  if (!check.empty()) {
    Check(work, check);
    return 0;
  }
  double constructed = Now();
  std::vector<pthread_t> pool(static_cast<size_t>(threads));
  for (pthread_t& thread : pool)
    if (pthread_create(&thread, nullptr, Thread, &work) != 0) Fail("cannot start a thread");
  while (work.done < 2 * kBatch) usleep(1000);
  usleep(300'000);
  uint64_t before = work.done;
  double from = Now(), cpu = CpuSeconds();
  usleep(static_cast<useconds_t>(seconds * 1e6));
  double rate = double(work.done - before) / (Now() - from);
  double cpu_ms = 1e3 * (CpuSeconds() - cpu) / double(work.done - before);
  work.stop = true;
  for (pthread_t thread : pool) pthread_join(thread, nullptr);
  double first = work.first_batch;
  std::printf(
      "{\"samples_per_s\": %.2f, \"cpu_ms_per_sample\": %.4f, \"first_batch_s\": %.4f, "
      "\"constructed_to_first_batch_s\": %.4f, "
      "\"peak_mb\": %.1f}\n",
      rate, cpu_ms, first - work.begin, first - constructed, PeakMegabytes());
}
