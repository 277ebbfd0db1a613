// HDF5 files as libhdf5 writes them, of any shape, type, layout and filter: libhdf5 does not crash on those,
// so a crash is ours. Our own code chooses the datasets that can be fields, finds where their rows lie, and
// reads rows there without libhdf5: each row must equal what libhdf5 reads. (Damaged files: hdf5_bytes_fuzz.)
#include <hdf5.h>

#include <numeric>

#include "fuzzed_input.h"
#include "fuzzed_source.h"
#include "loader/core/source/hdf5_driver.h"

namespace fullbore::fuzz {
namespace {

using loader::Hdf5Id;

constexpr hsize_t kMaxOfADimension = 9;

// H5T_NATIVE_... are calls, so the table is built on each call.
Hdf5Id TypeFrom(Input& input) {
  switch (input.Byte() % 20) {
    case 0:
      return Hdf5Id(H5Tcopy(H5T_STD_U8LE), H5Tclose);
    case 1:
      return Hdf5Id(H5Tcopy(H5T_STD_I8BE), H5Tclose);
    case 2:
      return Hdf5Id(H5Tcopy(H5T_STD_U16LE), H5Tclose);
    case 3:
      return Hdf5Id(H5Tcopy(H5T_STD_I16BE), H5Tclose);
    case 4:
      return Hdf5Id(H5Tcopy(H5T_STD_U32LE), H5Tclose);
    case 5:
      return Hdf5Id(H5Tcopy(H5T_STD_I32LE), H5Tclose);
    case 6:
      return Hdf5Id(H5Tcopy(H5T_STD_U64BE), H5Tclose);
    case 7:
      return Hdf5Id(H5Tcopy(H5T_STD_I64LE), H5Tclose);
    case 8:
      return Hdf5Id(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
    case 9:
      return Hdf5Id(H5Tcopy(H5T_IEEE_F64BE), H5Tclose);
    case 10: {  // a half, as h5py stores it
      Hdf5Id half(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
      H5Tset_fields(half.get(), 15, 10, 5, 0, 10);
      H5Tset_size(half.get(), 2);
      H5Tset_ebias(half.get(), 15);
      return half;
    }
    case 11: {
      Hdf5Id truth(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
      int8_t value = 0;
      H5Tenum_insert(truth.get(), "FALSE", &value);
      value = 1;
      H5Tenum_insert(truth.get(), "TRUE", &value);
      return truth;
    }
    case 12: {
      Hdf5Id text(H5Tcopy(H5T_C_S1), H5Tclose);
      H5Tset_size(text.get(), 1 + input.Byte() % 40);
      return text;
    }
    case 13: {
      Hdf5Id text(H5Tcopy(H5T_C_S1), H5Tclose);
      H5Tset_size(text.get(), H5T_VARIABLE);
      return text;
    }
    case 14:
      return Hdf5Id(H5Tvlen_create(H5T_NATIVE_UINT8), H5Tclose);
    case 15:
      return Hdf5Id(H5Tvlen_create(H5T_NATIVE_INT32), H5Tclose);
    case 16:
      return Hdf5Id(H5Tcreate(H5T_OPAQUE, 1 + input.Byte() % 40), H5Tclose);
    case 17: {  // odd sizes and precisions
      Hdf5Id number(H5Tcopy(H5T_STD_I32LE), H5Tclose);
      H5Tset_precision(number.get(), 1 + input.Byte() % 24);
      H5Tset_size(number.get(), 3);
      return number;
    }
    case 18: {
      Hdf5Id pair(H5Tcreate(H5T_COMPOUND, 8), H5Tclose);
      H5Tinsert(pair.get(), "a", 0, H5T_STD_I32LE);
      H5Tinsert(pair.get(), "b", 4, H5T_IEEE_F32LE);
      return pair;
    }
    default: {
      const hsize_t dims[] = {1 + input.Byte() % kMaxOfADimension};
      return Hdf5Id(H5Tarray_create2(H5T_STD_U8LE, 1, dims), H5Tclose);
    }
  }
}

void SetLayout(hid_t create, const std::vector<hsize_t>& dims, Input& input) {
  const int rank = static_cast<int>(dims.size());
  const uint8_t choice = input.Byte();
  if (choice % 8 == 0 || rank == 0) {
    if (choice % 16 == 0) H5Pset_layout(create, H5D_COMPACT);
    return;
  }
  if (choice % 8 == 1) return;  // contiguous
  std::vector<hsize_t> chunk(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool whole = i > 0 && choice % 4 != 0;
    chunk[i] = whole ? std::max<hsize_t>(1, dims[i]) : 1 + input.Byte() % kMaxOfADimension;
  }
  H5Pset_chunk(create, rank, chunk.data());
  const uint8_t filters = choice >= 128 ? input.Byte() : 0;
  if ((filters & 1) != 0) H5Pset_shuffle(create);
  if ((filters & 2) != 0) H5Pset_deflate(create, 1);
  if ((filters & 4) != 0) H5Pset_fletcher32(create);
  if ((filters & 8) != 0) H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY);
}

// Writes some rows of numbers; the others keep the fill value, and their chunks may not exist.
void WriteSome(hid_t set, hid_t type, const std::vector<hsize_t>& dims, Input& input) {
  if (dims.empty() || H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tis_variable_str(type) > 0) {
    if (!dims.empty() && dims.size() == 1 && H5Tis_variable_str(type) > 0) {
      const std::string text(input.Byte() % 50, 't');
      const std::vector<const char*> texts(dims[0], text.c_str());
      if (dims[0] > 0) H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data());
    } else if (dims.size() == 1 && dims[0] > 0 && H5Tget_class(type) == H5T_VLEN) {
      std::string bytes = input.Bytes(48);
      bytes.resize(48);
      std::vector<hvl_t> values(dims[0]);
      for (size_t i = 0; i < values.size(); ++i) values[i] = {i % 8, bytes.data()};
      H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    }
    return;
  }
  const hsize_t rows = dims[0];
  if (rows == 0) return;
  std::vector<hsize_t> start(dims.size(), 0), count = dims;
  start[0] = input.Below(rows);
  count[0] = 1 + input.Below(rows - start[0]);
  hsize_t elements = 1;
  for (const hsize_t size : count) elements *= size;
  if (elements == 0) return;
  std::vector<uint8_t> data(elements * H5Tget_size(type));
  std::iota(data.begin(), data.end(), input.Byte());
  const Hdf5Id space(H5Dget_space(set), H5Sclose);
  const Hdf5Id memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
  H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
  H5Dwrite(set, type, memory.get(), space.get(), H5P_DEFAULT, data.data());
}

void AddDataset(hid_t group, const std::string& name, hsize_t rows, Input& input) {
  std::vector<hsize_t> dims(input.Byte() % 4);
  if (!dims.empty()) dims[0] = input.Byte() % 8 == 0 ? input.Byte() % kMaxOfADimension : rows;
  for (size_t i = 1; i < dims.size(); ++i) dims[i] = input.Byte() % kMaxOfADimension;
  const Hdf5Id type = TypeFrom(input);
  const Hdf5Id space(dims.empty() ? H5Screate(H5S_SCALAR)
                                  : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                     H5Sclose);
  const Hdf5Id create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  SetLayout(create.get(), dims, input);
  const Hdf5Id set(
      H5Dcreate2(group, name.c_str(), type.get(), space.get(), H5P_DEFAULT, create.get(), H5P_DEFAULT),
      H5Dclose);
  if (set.valid()) WriteSome(set.get(), type.get(), dims, input);
}

// The written file, in memory.
std::string FileFrom(Input& input) {
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.get(), 1 << 16, false);
  if (input.Byte() % 2 == 0) H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18);
  const Hdf5Id of_file(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  if (input.Byte() % 8 == 0) H5Pset_userblock(of_file.get(), 512);
  const Hdf5Id file(H5Fcreate("fuzz.h5", H5F_ACC_TRUNC, of_file.get(), access.get()), H5Fclose);
  const hsize_t rows = 1 + input.Byte() % kMaxOfADimension;
  const int datasets = 1 + input.Byte() % 4;
  for (int i = 0; i < datasets; ++i) {
    const std::string name = std::to_string(i);
    if (input.Byte() % 4 == 0) {
      const Hdf5Id group(H5Gcreate2(file.get(), ("g" + name).c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                         H5Gclose);
      AddDataset(group.get(), name, rows, input);
    } else {
      AddDataset(file.get(), name, rows, input);
    }
  }
  if (input.Byte() % 4 == 0) H5Lcreate_soft("/", file.get(), "loop", H5P_DEFAULT, H5P_DEFAULT);
  H5Fflush(file.get(), H5F_SCOPE_GLOBAL);
  const ssize_t size = H5Fget_file_image(file.get(), nullptr, 0);
  if (size <= 0) return "";
  std::string bytes(static_cast<size_t>(size), '\0');
  H5Fget_file_image(file.get(), bytes.data(), bytes.size());
  return bytes;
}

// All elements of a dataset as libhdf5 reads them, in native form; empty if it has none.
std::vector<uint8_t> ReadByLibrary(std::string bytes, const std::string& dataset) {
  const std::lock_guard lock(loader::Hdf5Mutex());
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.get(), 1 << 16, false);
  H5Pset_file_image(access.get(), bytes.data(), bytes.size());
  const Hdf5Id file(H5Fopen("again.h5", H5F_ACC_RDONLY, access.get()), H5Fclose);
  const Hdf5Id set(H5Dopen2(file.get(), dataset.c_str(), H5P_DEFAULT), H5Dclose);
  if (!set.valid()) return {};
  const Hdf5Id type(H5Dget_type(set.get()), H5Tclose);
  const Hdf5Id native(H5Tget_native_type(type.get(), H5T_DIR_ASCEND), H5Tclose);
  const Hdf5Id space(H5Dget_space(set.get()), H5Sclose);
  const auto elements = static_cast<size_t>(std::max<hssize_t>(0, H5Sget_simple_extent_npoints(space.get())));
  std::vector<uint8_t> whole(elements * H5Tget_size(native.get()));
  if (whole.empty()) return {};
  if (H5Dread(set.get(), native.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, whole.data()) < 0) return {};
  return whole;
}

// Rows of arrays of numbers.
void CheckRows(const std::string& bytes, const std::string& dataset) {
  auto store = std::make_shared<loader::testing::MemoryStore>();
  store->files["a.h5"] = bytes;
  loader::SourceOptions options;
  options.fields = {dataset};
  const auto source = loader::OpenHdf5({options, {"a.h5"}, store});
  if (!source || (*source)->fields()[0].kind != loader::SourceFieldKind::kArray) return;
  std::vector<uint8_t> ours;
  loader::RawSample sample;
  for (uint64_t row = 0; row < (*source)->size(); ++row) {
    if (!(*source)->Read(row, sample)) std::abort();
    ours.insert(ours.end(), sample.fields[0].bytes.begin(), sample.fields[0].bytes.end());
  }
  const std::vector<uint8_t> theirs = ReadByLibrary(bytes, dataset);
  // Half floats, and unsigned integers that we have no type for, are widened.
  const bool widened = ours.size() != theirs.size();
  if (!widened && ours != theirs) std::abort();
}

}  // namespace
}  // namespace fullbore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fullbore::fuzz;
  static const auto silent = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  (void)silent;
  Input input(data, size);
  std::string bytes;
  {
    const std::lock_guard lock(fullbore::loader::Hdf5Mutex());
    bytes = FileFrom(input);
  }
  if (bytes.empty()) return 0;
  ReadEverything(fullbore::loader::OpenHdf5, {{"a.h5", bytes}}, {});
  for (const char* name : {"0", "1", "2", "3"}) CheckRows(bytes, name);
  return 0;
}
