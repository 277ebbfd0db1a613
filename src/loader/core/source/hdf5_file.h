// One HDF5 file, opened through a Store by a driver of our own, so that it may be remote.
//
// libhdf5 as distributions build it serves one thread at a time, so every call into it, for any file, holds
// one mutex. Rows that are stored as they are needed (contiguous, or in chunks without filters) are therefore
// read without it: their offsets are looked up once, and many threads read them at the same time. Compressed
// rows, texts and variable lengths are read by the library, one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fullbore/loader/source.h"
#include "loader/core/store.h"

namespace fullbore::loader {

struct Hdf5Dataset {
  std::string name;  // "train/images"
  SourceField field;
  uint64_t rows = 0;
  std::string unusable;  // why it cannot be a field; empty: it can
};

class Hdf5File {
 public:
  // kCorrupt: not an HDF5 file, or truncated.
  static Result<std::unique_ptr<Hdf5File>> Open(std::shared_ptr<Store> store, StoredFile file);
  ~Hdf5File();

  const std::vector<Hdf5Dataset>& datasets() const { return datasets_; }
  const StoredFile& file() const { return file_; }

  // Appends the row's bytes to `storage` at `at`, which moves past them; integers go into `value`.
  // Offsets rather than pointers, because the storage may move.
  struct RowPlace {
    size_t begin = 0, bytes = 0;
    int64_t integer = 0;
  };
  Result<RowPlace> ReadRow(size_t dataset, uint64_t row, std::vector<uint8_t>& storage, size_t at) const;

 private:
  struct Handle;  // libhdf5's part of a dataset
  Hdf5File(std::shared_ptr<Store> store, StoredFile file);
  Result<void> OpenLibrary();
  void FindDatasets(int64_t group, const std::string& prefix, int depth);
  void AddDataset(int64_t id, const std::string& name);
  void Describe(Hdf5Dataset& dataset, Handle& handle) const;
  void LocateRows(const Hdf5Dataset& dataset, Handle& handle) const;
  Result<RowPlace> ReadByLibrary(size_t dataset, uint64_t row, std::vector<uint8_t>& storage,
                                 size_t at) const;

  std::shared_ptr<Store> store_;
  StoredFile file_;
  int64_t id_ = -1;
  std::vector<Hdf5Dataset> datasets_;
  std::vector<Handle> handles_;  // of each dataset
};

}  // namespace fullbore::loader
