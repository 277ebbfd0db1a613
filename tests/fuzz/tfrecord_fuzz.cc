// A TFRecord file, and the same bytes as the Example in a record with correct checksums.
#include "fuzzed_source.h"
#include "loader/core/source/testing/example_builder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fullbore::fuzz::ReadEverything;
  using fullbore::loader::testing::ExampleBuilder;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  ReadEverything(fullbore::loader::OpenTfRecord, {{"a.tfrecord", bytes}}, {});
  // After a first record that declares fields of all kinds.
  const std::string first = ExampleBuilder()
                                .Bytes("a", "text")
                                .Integers("b", {1})
                                .Integers("c", {1, 2})
                                .Floats("d", {1, 2})
                                .Record();
  ReadEverything(fullbore::loader::OpenTfRecord, {{"a.tfrecord", first + ExampleBuilder::RecordOf(bytes)}},
                 {});
  ReadEverything(fullbore::loader::OpenTfRecord, {{"a.tfrecord", ExampleBuilder::RecordOf(bytes)}}, {});
  return 0;
}
