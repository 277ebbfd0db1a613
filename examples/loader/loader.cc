// The loader in C++: example_loader PHOTOS, a directory of class directories. CMakeLists.txt says how to
// build it.
#include "fullbore/loader.h"

#include <chrono>
#include <cstdio>

using namespace fullbore::loader;

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]), 2;
  LoaderOptions options;
  options.source.paths = {argv[1]};
  options.transforms = {RandomResizedCrop{.height = 224, .width = 224}, RandomHorizontalFlip{}, Normalize{}};
  options.batch_size = 64;
  auto loader = Loader::Open(options);
  if (!loader) return std::fprintf(stderr, "%s\n", fullbore::ToString(loader.error()).c_str()), 1;

  const auto begin = std::chrono::steady_clock::now();
  int64_t rows = 0;
  for (;;) {
    auto batch = loader->Next();
    if (!batch) return std::fprintf(stderr, "%s\n", fullbore::ToString(batch.error()).c_str()), 1;
    if (!*batch) break;  // the end of the epoch
    // (*batch)->fields[0] is the images, fields[1] their labels: the training step goes here.
    rows += (*batch)->rows;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%lld images of %zu classes, %.0f images/s\n", static_cast<long long>(rows),
              loader->class_names().size(), static_cast<double>(rows) / took.count());
}
