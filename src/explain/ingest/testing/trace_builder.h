// Writes small PyTorch-profiler traces for tests: a few events each, in the words of one version of the
// profiler.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fullbore::ingest::testing {

class TraceBuilder {
 public:
  // Times in microseconds; kernels run on device 0.
  TraceBuilder& Kernel(const std::string& name, double begin, double duration, int correlation,
                       int stream = 7, const std::string& more_args = "");
  TraceBuilder& Copy(const std::string& name, double begin, double duration, int correlation, int64_t bytes);
  TraceBuilder& Call(const std::string& name, double begin, double duration, int correlation,
                     int thread = 100);
  TraceBuilder& Launch(double begin, double duration, int correlation, int thread = 100) {
    return Call("cudaLaunchKernel", begin, duration, correlation, thread);
  }
  TraceBuilder& Op(const std::string& name, double begin, double duration, int thread = 100);
  // With what record_shapes=True adds: lists as JSON, "[[32, 3], []]", "[\"float\", \"Scalar\"]".
  TraceBuilder& Shaped(const std::string& name, double begin, double duration, const std::string& dims,
                       const std::string& types, const std::string& concretes, int thread = 100);
  TraceBuilder& Annotation(const std::string& name, double begin, double duration, int thread = 100,
                           const std::string& args = "{}");
  TraceBuilder& Python(const std::string& name, double begin, double duration, int thread = 100);
  TraceBuilder& Step(int number, double begin, double duration);
  TraceBuilder& Loader(double begin, double duration) {
    return Op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begin, duration);
  }
  TraceBuilder& Raw(const std::string& event);  // as it is

  // A launch of 5 us at `begin`, and its kernel from `kernel_begin` on.
  TraceBuilder& Launched(const std::string& kernel, double begin, double kernel_begin, double duration) {
    const int id = next_correlation_++;
    return Launch(begin, 5, id).Kernel(kernel, kernel_begin, duration, id);
  }

  TraceBuilder& OldNames();                           // the categories of PyTorch 1.8
  TraceBuilder& Property(const std::string& member);  // "\"distributedInfo\": {...}"
  std::string Json() const;
  std::string BareArray() const;

 private:
  TraceBuilder& Event(const char* category, const std::string& name, const std::string& pid, int tid,
                      double begin, double duration, const std::string& args);

  std::string events_;
  std::string properties_;
  bool old_names_ = false;
  int next_correlation_ = 1'000'000;
};

// Three steps of a small training loop: loader, forward, backward on a second thread, a synchronisation,
// collectives; every kind of event that the reader knows occurs. For truncation, mutation and format tests.
std::string SmallTrainingTrace();

std::string Gzip(const std::string& text);
std::string Zstd(const std::string& text);
std::string Xz(const std::string& text);
std::string Bzip2(const std::string& text);
std::string Zip(const std::vector<std::pair<std::string, std::string>>& members);  // names and contents

// One member of a tar file, or its header alone; a tar file is its members and a kilobyte of zeros.
std::string TarHeader(const std::string& name, int64_t bytes, char type = '0');
std::string TarMember(const std::string& name, const std::string& contents, char type = '0');

}  // namespace fullbore::ingest::testing
