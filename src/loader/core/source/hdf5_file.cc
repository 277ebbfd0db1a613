#include "loader/core/source/hdf5_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "loader/core/source/container.h"
#include "loader/core/source/field_kinds.h"
#include "loader/core/source/hdf5_driver.h"

namespace fullbore::loader {

namespace {

constexpr int kDeepestGroup = 16;
constexpr size_t kMaxDatasets = 10'000;
constexpr size_t kMaxRowBytes = size_t{1} << 31;  // more in one sample is damage
// libhdf5 1.10 walks through all chunks to find one: with more, opening would take seconds.
constexpr uint64_t kMaxLocatedChunks = 4096;

enum class Content { kNumbers, kText, kVariableText, kVariableBytes, kOpaque };

struct ElementType {
  Content content = Content::kNumbers;
  DType dtype = DType::kUInt8;
  size_t bytes = 0;  // of one element, in the file
  bool is_unsigned = false;
  bool converted = false;  // stored in a form other than in memory
};

std::optional<DType> DTypeOf(H5T_class_t type_class, size_t bytes, bool is_unsigned) {
  if (type_class == H5T_FLOAT) {
    if (bytes == 2) return DType::kFloat16;
    if (bytes == 4) return DType::kFloat32;
    return bytes == 8 ? std::optional(DType::kFloat64) : std::nullopt;
  }
  switch (bytes) {
    case 1:
      return is_unsigned ? DType::kUInt8 : DType::kInt8;
    case 2:
      return is_unsigned ? DType::kUInt16 : DType::kInt16;
    case 4:
      return is_unsigned ? std::nullopt : std::optional(DType::kInt32);
    case 8:
      return is_unsigned ? std::nullopt : std::optional(DType::kInt64);
    default:
      return std::nullopt;
  }
}

// Empty for what cannot be a field: compounds, references, numbers without a matching DType.
std::optional<ElementType> ElementOf(hid_t type) {
  ElementType element;
  const H5T_class_t type_class = H5Tget_class(type);
  element.bytes = H5Tget_size(type);
  if (type_class == H5T_STRING) {
    element.content = H5Tis_variable_str(type) > 0 ? Content::kVariableText : Content::kText;
    return element;
  }
  if (type_class == H5T_OPAQUE) {
    element.content = Content::kOpaque;
    return element;
  }
  if (type_class == H5T_VLEN) {
    const Hdf5Id inner(H5Tget_super(type), H5Tclose);
    if (H5Tget_class(inner.get()) != H5T_INTEGER || H5Tget_size(inner.get()) != 1) return std::nullopt;
    element.content = Content::kVariableBytes;
    return element;
  }
  if (type_class == H5T_ENUM && element.bytes == 1) {  // as h5py stores booleans
    element.dtype = DType::kBool;
    return element;
  }
  if (type_class != H5T_INTEGER && type_class != H5T_FLOAT) return std::nullopt;
  element.is_unsigned = type_class == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_NONE;
  element.converted = element.bytes > 1 && H5Tget_order(type) != H5T_ORDER_LE;
  const auto dtype = DTypeOf(type_class, element.bytes, element.is_unsigned);
  const bool wide = element.is_unsigned && (element.bytes == 4 || element.bytes == 8);
  if (!dtype && !wide) return std::nullopt;
  element.dtype = dtype.value_or(DType::kInt64);
  element.converted |= !dtype.has_value();
  return element;
}

hid_t MemoryType(DType dtype, hid_t file_type) {
  switch (dtype) {
    case DType::kUInt8:
      return H5T_NATIVE_UINT8;
    case DType::kInt8:
      return H5T_NATIVE_INT8;
    case DType::kUInt16:
      return H5T_NATIVE_UINT16;
    case DType::kInt16:
      return H5T_NATIVE_INT16;
    case DType::kInt32:
      return H5T_NATIVE_INT32;
    case DType::kInt64:
      return H5T_NATIVE_INT64;
    case DType::kFloat32:
      return H5T_NATIVE_FLOAT;
    case DType::kFloat64:
      return H5T_NATIVE_DOUBLE;
    default:
      return file_type;  // booleans and halves: as stored
  }
}

template <typename Number>
int64_t NumberAt(const uint8_t* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return static_cast<int64_t>(number);
}

int64_t IntegerOf(DType dtype, const uint8_t* at) {
  switch (dtype) {
    case DType::kInt8:
      return NumberAt<int8_t>(at);
    case DType::kUInt16:
      return NumberAt<uint16_t>(at);
    case DType::kInt16:
      return NumberAt<int16_t>(at);
    case DType::kInt32:
      return NumberAt<int32_t>(at);
    case DType::kInt64:
      return NumberAt<int64_t>(at);
    default:
      return *at;
  }
}

}  // namespace

struct Hdf5File::Handle {
  Hdf5Id dataset, type;
  ElementType element;
  std::vector<hsize_t> dims;
  size_t row_bytes = 0;  // in memory; 0: varies from row to row
  // Where rows are, to read them without libhdf5: chunks of chunk_rows each. Empty: only libhdf5 can read
  // them.
  std::vector<uint64_t> chunks;
  uint64_t chunk_rows = 0;
};

Hdf5File::Hdf5File(std::shared_ptr<Store> store, StoredFile file)
    : store_(std::move(store)), file_(std::move(file)) {}

Hdf5File::~Hdf5File() {
  const std::lock_guard lock(Hdf5Mutex());
  handles_.clear();
  if (id_ >= 0) H5Fclose(id_);
}

Result<std::unique_ptr<Hdf5File>> Hdf5File::Open(std::shared_ptr<Store> store, StoredFile file) {
  std::unique_ptr<Hdf5File> opened(new Hdf5File(std::move(store), std::move(file)));
  if (auto done = opened->OpenLibrary(); !done) return done.error();
  // Variable-length bytes are images, arrays or text by their content, so they must be read first.
  for (size_t i = 0; i < opened->datasets_.size(); ++i) {
    Hdf5Dataset& dataset = opened->datasets_[i];
    if (dataset.field.kind != SourceFieldKind::kBytes || dataset.rows == 0 || !dataset.unusable.empty())
      continue;
    std::vector<uint8_t> storage;
    const auto first = opened->ReadRow(i, 0, storage, 0);
    if (first) dataset.field.kind = KindOfContent(std::span(storage).subspan(first->begin, first->bytes));
  }
  return opened;
}

Result<void> Hdf5File::OpenLibrary() {
  const std::lock_guard lock(Hdf5Mutex());
  if (Hdf5IsLost()) {
    return Error{ErrorCode::kUnsupported,
                 "this process was forked while another thread waited for the storage of an HDF5 file",
                 "fork before the loader is opened, or start the process with the 'spawn' method"};
  }
  id_ = OpenHdf5Through(*store_, file_);
  if (id_ < 0) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("'{}' cannot be opened as HDF5: it is truncated, damaged or not an HDF5 file",
                             file_.path),
                 ""};
  }
  const Hdf5Id root(H5Gopen2(id_, "/", H5P_DEFAULT), H5Gclose);
  if (!root.valid())
    return Error{ErrorCode::kCorrupt, fmt::format("'{}' has no readable root group", file_.path), ""};
  FindDatasets(root.get(), "", 0);
  return {};
}

void Hdf5File::FindDatasets(int64_t group, const std::string& prefix, int depth) {
  H5G_info_t info;
  if (depth > kDeepestGroup || H5Gget_info(group, &info) < 0) return;
  for (hsize_t i = 0; i < info.nlinks && datasets_.size() < kMaxDatasets; ++i) {
    char name[1024];
    const ssize_t length =
        H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT);
    if (length <= 0 || static_cast<size_t>(length) >= sizeof name) continue;
    H5L_info_t link;
    if (H5Lget_info(group, name, &link, H5P_DEFAULT) < 0 || link.type == H5L_TYPE_EXTERNAL) continue;
    Hdf5Id object(H5Oopen(group, name, H5P_DEFAULT), H5Oclose);
    if (!object.valid()) continue;
    const H5I_type_t type = H5Iget_type(object.get());
    if (type == H5I_GROUP) FindDatasets(object.get(), prefix + name + "/", depth + 1);
    if (type == H5I_DATASET) AddDataset(object.get(), prefix + name);
  }
}

void Hdf5File::AddDataset(int64_t id, const std::string& name) {
  const Hdf5Id space(H5Dget_space(id), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  Handle handle;
  Hdf5Dataset dataset{name, {name, SourceFieldKind::kBytes, {}, {}}, 0, ""};
  if (rank < 1 || rank > H5S_MAX_RANK) {
    dataset.unusable = "it has no dimension that could count samples";
  } else {
    handle.dims.resize(static_cast<size_t>(rank));
    H5Sget_simple_extent_dims(space.get(), handle.dims.data(), nullptr);
    dataset.rows = handle.dims[0];
    const Hdf5Id create(H5Dget_create_plist(id), H5Pclose);
    H5Iinc_ref(id);
    handle.dataset = Hdf5Id(id, H5Oclose);
    handle.type = Hdf5Id(H5Dget_type(id), H5Tclose);
    if (H5Pget_external_count(create.get()) > 0 || H5Pget_layout(create.get()) == H5D_VIRTUAL) {
      dataset.unusable = "its data are in other files";
    } else {
      Describe(dataset, handle);
    }
    if (dataset.unusable.empty()) LocateRows(dataset, handle);
  }
  datasets_.push_back(std::move(dataset));
  handles_.push_back(std::move(handle));
}

void Hdf5File::Describe(Hdf5Dataset& dataset, Handle& handle) const {
  const auto element = ElementOf(handle.type.get());
  if (!element) {
    dataset.unusable = "it holds neither numbers, text nor bytes";
    return;
  }
  handle.element = *element;
  if (element->content != Content::kNumbers) {
    if (handle.dims.size() > 1) dataset.unusable = "each of its samples has several texts";
    if (element->bytes > kMaxRowBytes) dataset.unusable = "a sample of it is larger than 2 GiB";
    const bool text = element->content == Content::kText || element->content == Content::kVariableText;
    if (text) dataset.field.kind = SourceFieldKind::kText;
    return;
  }
  uint64_t elements = 1;
  for (size_t i = 1; i < handle.dims.size(); ++i) {
    if (handle.dims[i] == 0 || elements > kMaxRowBytes / handle.dims[i]) {
      dataset.unusable =
          handle.dims[i] == 0 ? "its samples are empty" : "a sample of it is larger than 2 GiB";
      return;
    }
    elements *= handle.dims[i];
    dataset.field.shape.push_back(static_cast<int64_t>(handle.dims[i]));
  }
  handle.row_bytes = elements * BytesOf(element->dtype);
  if (handle.row_bytes > kMaxRowBytes) dataset.unusable = "a sample of it is larger than 2 GiB";
  const bool floats = H5Tget_class(handle.type.get()) == H5T_FLOAT;
  dataset.field.kind = floats || handle.dims.size() > 1 ? SourceFieldKind::kArray : SourceFieldKind::kInteger;
  if (dataset.field.kind == SourceFieldKind::kArray) dataset.field.dtype = element->dtype;
}

// Called with the mutex held. Leaves the chunks empty if anything is out of the ordinary.
void Hdf5File::LocateRows(const Hdf5Dataset& dataset, Handle& handle) const {
  if (handle.row_bytes == 0 || handle.element.converted || dataset.rows == 0) return;
  const Hdf5Id create(H5Dget_create_plist(handle.dataset.get()), H5Pclose);
  const Hdf5Id of_file(H5Fget_create_plist(id_), H5Pclose);
  hsize_t in_front = 0;
  if (H5Pget_userblock(of_file.get(), &in_front) < 0 || in_front != 0) return;
  if (H5Pget_nfilters(create.get()) != 0) return;
  const auto fits = [&](uint64_t address, uint64_t bytes) {
    return address <= file_.bytes && bytes <= file_.bytes - address;
  };
  if (H5Pget_layout(create.get()) == H5D_CONTIGUOUS) {
    const haddr_t address = H5Dget_offset(handle.dataset.get());
    if (address == HADDR_UNDEF || dataset.rows > file_.bytes / handle.row_bytes) return;
    if (!fits(address, dataset.rows * handle.row_bytes)) return;
    handle.chunks = {address};
    handle.chunk_rows = dataset.rows;
    return;
  }
  if (H5Pget_layout(create.get()) != H5D_CHUNKED) return;
  std::vector<hsize_t> shape(handle.dims.size());
  if (H5Pget_chunk(create.get(), static_cast<int>(shape.size()), shape.data()) < 0 || shape[0] == 0) return;
  if (!std::equal(shape.begin() + 1, shape.end(), handle.dims.begin() + 1)) return;
  const uint64_t count = (dataset.rows - 1) / shape[0] + 1;
  if (count > kMaxLocatedChunks) return;
  std::vector<uint64_t> chunks;
  std::vector<hsize_t> corner(handle.dims.size(), 0);
  for (uint64_t i = 0; i < count; ++i) {
    corner[0] = i * shape[0];
    unsigned filters_left_out = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;
    if (H5Dget_chunk_info_by_coord(handle.dataset.get(), corner.data(), &filters_left_out, &address, &bytes) <
        0)
      return;
    if (address == HADDR_UNDEF || bytes != shape[0] * handle.row_bytes || !fits(address, bytes)) return;
    chunks.push_back(address);
  }
  handle.chunks = std::move(chunks);
  handle.chunk_rows = shape[0];
}

Result<Hdf5File::RowPlace> Hdf5File::ReadRow(size_t dataset, uint64_t row, std::vector<uint8_t>& storage,
                                             size_t at) const {
  const Handle& handle = handles_[dataset];
  if (handle.row_bytes == 0) return ReadByLibrary(dataset, row, storage, at);
  const auto room = RoomIn(storage, at + handle.row_bytes).subspan(at);
  if (handle.chunks.empty()) {
    if (auto read = ReadByLibrary(dataset, row, storage, at); !read) return read;
  } else {
    const uint64_t offset =
        handle.chunks[row / handle.chunk_rows] + row % handle.chunk_rows * handle.row_bytes;
    if (auto read = store_->Read(file_, offset, room); !read) return read.error();
  }
  RowPlace place{at, handle.row_bytes, 0};
  if (datasets_[dataset].field.kind == SourceFieldKind::kInteger) {
    place.integer = IntegerOf(handle.element.dtype, room.data());
    place.bytes = 0;
  }
  return place;
}

Result<Hdf5File::RowPlace> Hdf5File::ReadByLibrary(size_t number, uint64_t row, std::vector<uint8_t>& storage,
                                                   size_t at) const {
  const Handle& handle = handles_[number];
  const Error failed{ErrorCode::kCorrupt,
                     fmt::format("'{}': row {} of '{}' cannot be read: the file is truncated or damaged",
                                 file_.path, row, datasets_[number].name),
                     ""};
  const std::lock_guard lock(Hdf5Mutex());
  std::vector<hsize_t> start(handle.dims.size(), 0), count = handle.dims;
  start[0] = row;
  count[0] = 1;
  const Hdf5Id space(H5Dget_space(handle.dataset.get()), H5Sclose);
  const Hdf5Id memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
  if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) < 0)
    return failed;
  const auto read = [&](hid_t type, void* out) {
    return H5Dread(handle.dataset.get(), type, memory.get(), space.get(), H5P_DEFAULT, out) >= 0;
  };
  const auto append = [&](const void* bytes, size_t length) {
    const auto room = RoomIn(storage, at + length).subspan(at, length);
    if (length > 0) std::memcpy(room.data(), bytes, length);
    return RowPlace{at, length, 0};
  };
  switch (handle.element.content) {
    case Content::kNumbers: {
      const hid_t type = MemoryType(handle.element.dtype, handle.type.get());
      if (!read(type, storage.data() + at)) return failed;
      return RowPlace{at, handle.row_bytes, 0};
    }
    case Content::kVariableBytes: {
      hvl_t value{};
      if (!read(handle.type.get(), &value)) return failed;
      const RowPlace place = append(value.p, value.len);
      H5free_memory(value.p);
      return place;
    }
    case Content::kVariableText: {
      char* value = nullptr;
      if (!read(handle.type.get(), &value)) return failed;
      const RowPlace place = append(value, value ? std::strlen(value) : 0);
      H5free_memory(value);
      return place;
    }
    case Content::kText:
    case Content::kOpaque: {
      std::vector<char> value(handle.element.bytes);
      if (!read(handle.type.get(), value.data())) return failed;
      const bool text = handle.element.content == Content::kText;
      return append(value.data(), text ? strnlen(value.data(), value.size()) : value.size());
    }
  }
  return failed;
}

}  // namespace fullbore::loader
