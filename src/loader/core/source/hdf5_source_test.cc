#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <thread>

#include "base/fd.h"
#include "base/testing/scratch_directory.h"
#include "loader/core/source/container.h"
#include "loader/core/source/hdf5_driver.h"
#include "loader/core/source/testing/memory_store.h"
#include "loader/core/source/testing/read_all.h"

namespace fullbore::loader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MemoryStore;
using testing::ReadAll;
using testing::ReadText;

constexpr hsize_t kRows = 5, kHeight = 2, kWidth = 3;

void WriteImages(hid_t file, const char* name, hid_t create) {
  const hsize_t dims[] = {kRows, kHeight, kWidth};
  const Hdf5Id space(H5Screate_simple(3, dims, nullptr), H5Sclose);
  const Hdf5Id set(H5Dcreate2(file, name, H5T_STD_U8LE, space.get(), H5P_DEFAULT, create, H5P_DEFAULT),
                   H5Dclose);
  std::vector<uint8_t> data;
  for (size_t i = 0; i < kRows * kHeight * kWidth; ++i) data.push_back(static_cast<uint8_t>('A' + i));
  H5Dwrite(set.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data());
}

void WriteRows(hid_t file, const char* name, hid_t type, hid_t memory_type, const void* data) {
  const hsize_t dims[] = {kRows};
  const Hdf5Id space(H5Screate_simple(1, dims, nullptr), H5Sclose);
  const Hdf5Id set(H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                   H5Dclose);
  H5Dwrite(set.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
}

// The bytes of a file with a dataset of each kind.
std::string SmallFile() {
  const std::lock_guard lock(Hdf5Mutex());
  ScratchDirectory root;
  const std::string path = root / "a.h5";
  {
    const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const Hdf5Id chunked(H5Pcreate(H5P_DATASET_CREATE), H5Pclose),
        packed(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const hsize_t chunk[] = {2, kHeight, kWidth};
    H5Pset_chunk(chunked.get(), 3, chunk);
    H5Pset_chunk(packed.get(), 3, chunk);
    H5Pset_deflate(packed.get(), 6);
    WriteImages(file.get(), "contiguous", H5P_DEFAULT);
    WriteImages(file.get(), "chunked", chunked.get());
    WriteImages(file.get(), "packed", packed.get());
    const int64_t labels[kRows] = {3, -1, 4, 1, 5};
    WriteRows(file.get(), "label", H5T_STD_I16BE, H5T_NATIVE_INT64, labels);
    WriteRows(file.get(), "label8", H5T_STD_I8LE, H5T_NATIVE_INT64, labels);
    const char* texts[kRows] = {"eins", "zwei", "", "vier", "f\xc3\xbcnf"};
    const Hdf5Id text(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(text.get(), H5T_VARIABLE);
    WriteRows(file.get(), "text", text.get(), text.get(), texts);
    char bytes[] = "\xff\xd8\xff jpeg";
    hvl_t values[kRows];
    for (hsize_t i = 0; i < kRows; ++i) values[i] = {4 + i, bytes};
    const Hdf5Id vlen(H5Tvlen_create(H5T_NATIVE_UINT8), H5Tclose);
    WriteRows(file.get(), "encoded", vlen.get(), vlen.get(), values);
    const Hdf5Id group(H5Gcreate2(file.get(), "more", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    const double weights[kRows] = {0, 1, 2, 3, 4};
    WriteRows(group.get(), "weight", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, weights);
  }
  return *ReadFile(path);
}

Result<std::unique_ptr<Source>> OpenBytes(const std::string& bytes, std::vector<std::string> fields = {}) {
  auto store = std::make_shared<MemoryStore>();
  store->files["a.h5"] = bytes;
  SourceOptions options;
  options.fields = std::move(fields);
  return OpenHdf5({options, {"a.h5"}, store});
}

TEST(Hdf5SourceTest, TellsKindsOfDatasets) {
  auto source = OpenBytes(SmallFile());
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  std::vector<std::string> fields;
  for (const SourceField& field : (*source)->fields())
    fields.push_back(field.name + " " + std::to_string(static_cast<int>(field.kind)) + " " +
                     NameOf(field.dtype) + " " + std::to_string(field.shape.size()));
  EXPECT_THAT(fields, ElementsAre("chunked 2 uint8 2", "contiguous 2 uint8 2", "encoded 0 uint8 0",
                                  "label 3 uint8 0", "label8 3 uint8 0", "more/weight 2 float64 0",
                                  "packed 2 uint8 2", "text 4 uint8 0"));
  EXPECT_EQ((*source)->size(), kRows);
}

TEST(Hdf5SourceTest, ReadsRowsOfAllLayouts) {
  auto source =
      OpenBytes(SmallFile(), {"contiguous", "chunked", "packed", "label", "label8", "text", "encoded"});
  ASSERT_TRUE(source.ok()) << ToString(source.error());
  EXPECT_THAT(ReadAll(**source), ElementsAre("ABCDEF|ABCDEF|ABCDEF|3|3|eins|\xff\xd8\xff ",
                                             "GHIJKL|GHIJKL|GHIJKL|-1|-1|zwei|\xff\xd8\xff j",
                                             "MNOPQR|MNOPQR|MNOPQR|4|4||\xff\xd8\xff jp",
                                             "STUVWX|STUVWX|STUVWX|1|1|vier|\xff\xd8\xff jpe",
                                             "YZ[\\]^|YZ[\\]^|YZ[\\]^|5|5|f\xc3\xbcnf|\xff\xd8\xff jpeg"));
  EXPECT_EQ((*source)->NameOf(2), "a.h5: row 2");
}

TEST(Hdf5SourceTest, SaysWhichDatasetsThereAre) {
  auto source = OpenBytes(SmallFile(), {"lable"});
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(source.error().text,
              HasSubstr("no dataset 'lable' (it has: chunked (5 rows), contiguous (5 rows)"));
}

TEST(Hdf5SourceTest, ManyThreadsReadAtOnce) {
  auto source = OpenBytes(SmallFile(), {"contiguous", "packed", "text"});
  ASSERT_TRUE(source.ok());
  const auto expected = ReadAll(**source);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round)
        for (uint64_t id = 0; id < kRows; ++id) wrong += ReadText(**source, id) != expected[id];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// In a fork of this process: true. Not within a minute: false.
bool ChildSees(const std::function<bool()>& what) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(what() ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

TEST(Hdf5SourceTest, ForksOfAReadingProcessCanRead) {
  const std::string bytes = SmallFile();
  auto source = OpenBytes(bytes, {"packed", "text"});
  ASSERT_TRUE(source.ok());
  const auto expected = ReadAll(**source);
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) ReadAll(**source);
  });
  for (int turn = 0; turn < 20; ++turn) {
    EXPECT_TRUE(ChildSees([&] {
      auto its_own = OpenBytes(bytes, {"packed", "text"});
      return its_own.ok() && ReadAll(**its_own) == expected;
    }));
  }
  done = true;
  reader.join();
}

TEST(Hdf5SourceTest, AForkDuringAStuckReadGetsAnErrorInsteadOfHanging) {
  const std::string bytes = SmallFile();
  std::promise<void> holds, may_end;
  std::thread reader([&] {
    const std::lock_guard lock(Hdf5Mutex());
    holds.set_value();
    may_end.get_future().wait();
  });
  holds.get_future().wait();
  EXPECT_TRUE(ChildSees([&] {
    const auto its_own = OpenBytes(bytes, {"packed"});
    return !its_own.ok() && its_own.error().code == ErrorCode::kUnsupported;
  }));
  may_end.set_value();
  reader.join();
  EXPECT_TRUE(OpenBytes(bytes, {"packed"}).ok());
}

TEST(Hdf5SourceTest, EveryTruncationIsAnErrorOrBadSamples) {
  const std::string whole = SmallFile();
  const auto expected = ReadAll(**OpenBytes(whole, {"contiguous", "packed", "text"}));
  for (size_t length = 0; length < whole.size(); length += length < 512 ? 1 : 37) {
    auto source = OpenBytes(whole.substr(0, length), {"contiguous", "packed", "text"});
    if (!source.ok()) continue;
    const auto texts = ReadAll(**source);
    for (size_t i = 0; i < texts.size(); ++i)
      EXPECT_TRUE(texts[i] == expected[i] || texts[i].starts_with("bad: ")) << length;
  }
}

}  // namespace
}  // namespace fullbore::loader
