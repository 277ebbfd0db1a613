#include "loader/python/convert.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable.h"
#include "loader/python/interpreter.h"

namespace fullbore::loader {

namespace nb = nanobind;

namespace {

// What an array keeps alive. In a forked child it is never released: the pool's lock may be held by a thread
// that the child does not have.
struct Keeper {
  std::shared_ptr<void> owner;
  pid_t pid = getpid();
};

void Drop(void* keeper) noexcept {
  auto* kept = static_cast<Keeper*>(keeper);
  if (kept->pid == getpid()) delete kept;
}

nb::dlpack::dtype TypeOf(DType type) {
  using Code = nb::dlpack::dtype_code;
  const auto of = [type](Code code) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(8 * BytesOf(type)), 1};
  };
  switch (type) {
    case DType::kUInt8:
    case DType::kUInt16:
      return of(Code::UInt);
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return of(Code::Int);
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return of(Code::Float);
    case DType::kBFloat16:
      return of(Code::Bfloat);
    case DType::kBool:
      return of(Code::Bool);
  }
  return of(Code::UInt);
}

// The names that python/fullbore/data/errors.py knows.
const char* NameOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kPermission:
      return "permission";
    case ErrorCode::kNoSpace:
      return "no space";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

nb::object ToItem(FieldKind kind, std::string_view item) {
  if (kind == FieldKind::kBytes) return nb::bytes(item.data(), item.size());
  return nb::steal(PyUnicode_DecodeUTF8(item.data(), static_cast<Py_ssize_t>(item.size()), "replace"));
}

nb::list FieldsOf(const Row& row) {
  nb::list fields;
  for (const BatchField& field : row.fields) {
    nb::object value =
        field.kind == FieldKind::kTensor ? ToArray(field, row.owner) : ToItem(field.kind, field.items.at(0));
    fields.append(nb::make_tuple(field.name, value));
  }
  return fields;
}

}  // namespace

nb::str ToText(std::string_view text) {
  const std::string printable = Printable(text, true);
  return nb::str(printable.data(), printable.size());
}

nb::str ToFileName(std::string_view name) {
  return nb::steal<nb::str>(
      PyUnicode_DecodeFSDefaultAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
}

void Raise(const Error& error) {
  const nb::object made = nb::module_::import_("fullbore.data.errors")
                              .attr("make")(NameOf(error.code), ToText(error.text), ToText(error.hint));
  PyErr_SetObject(made.type().ptr(), made.ptr());
  throw nb::python_error();
}

nb::object ToArray(const BatchField& field, const std::shared_ptr<void>& owner, int cuda_device) {
  const nb::capsule keeper(new Keeper{owner}, Drop);
  const std::vector<size_t> shape(field.shape.begin(), field.shape.end());
  const bool host = cuda_device < 0;
  return nb::cast(nb::ndarray<nb::array_api>(
      field.data, shape.size(), shape.data(), keeper, nullptr, TypeOf(field.dtype),
      host ? nb::device::cpu::value : nb::device::cuda::value, host ? 0 : cuda_device));
}

nb::list ToFields(const Batch& batch) {
  nb::list fields;
  for (const BatchField& field : batch.fields) {
    if (field.kind == FieldKind::kTensor) {
      fields.append(nb::make_tuple(field.name, ToArray(field, batch.owner, batch.cuda_device)));
      continue;
    }
    nb::list items;
    for (const std::string_view item : field.items) items.append(ToItem(field.kind, item));
    fields.append(nb::make_tuple(field.name, items));
  }
  return fields;
}

nb::dict ToDict(const LoaderStats& stats) {
  nb::list stages;
  for (const StageStats& stage : stats.stages) {
    nb::dict said;
    said["name"] = stage.name;
    said["threads"] = stage.threads;
    said["samples"] = stage.samples;
    said["bytes"] = stage.bytes;
    said["busy_ns"] = stage.busy_ns;
    said["blocked_ns"] = stage.blocked_ns;
    stages.append(said);
  }
  nb::dict said;
  said["stages"] = stages;
  said["ready_batches"] = stats.ready_batches;
  said["ready_capacity"] = stats.ready_capacity;
  said["batches"] = stats.batches;
  said["consumer_wait_ns"] = stats.consumer_wait_ns;
  said["consumer_busy_ns"] = stats.consumer_busy_ns;
  said["pool_bytes"] = stats.pool_bytes;
  said["bad_samples"] = stats.bad_samples;
  return said;
}

// --- The user stage

namespace {

nb::object Asked(const nb::object& function, const Row& row) {
  const std::array<nb::object, 4> arguments = {FieldsOf(row), nb::cast(row.sample_id), nb::cast(row.epoch),
                                               nb::cast(row.random_seed)};
  std::array<PyObject*, arguments.size()> borrowed;
  std::transform(arguments.begin(), arguments.end(), borrowed.begin(),
                 [](const nb::object& o) { return o.ptr(); });
  PyObject* said = CallAndMayOutlive(function.ptr(), borrowed.data(), borrowed.size());
  if (!said) throw nb::python_error();
  return nb::steal(said);
}

Error Closed() { return {ErrorCode::kUnavailable, "the loader is closed", ""}; }

}  // namespace

std::shared_ptr<PythonStage> PythonStage::Of(nb::object function) {
  auto stage = std::make_shared<PythonStage>();
  stage->function_ = function.release().ptr();
  return stage;
}

RowFunction PythonStage::ToRowFunction(std::shared_ptr<PythonStage> stage) {
  return [stage = std::move(stage)](Row& row) { return stage->Call(row); };
}

void PythonStage::Close() {
  closed_ = true;
  PyObject* function = nullptr;
  {
    const std::lock_guard lock(mutex_);
    function = std::exchange(function_, nullptr);
  }
  Py_XDECREF(function);
}

int PythonStage::Visit(visitproc visit, void* arg) const {
  Py_VISIT(function_);
  return 0;
}

Result<void> PythonStage::Call(Row& row) {
  const CallUnderWay under_way;  // before the question
  if (closed_ || !CallUnderWay::MayBegin()) return Closed();
  const TakeInterpreter interpreter;
  try {
    nb::object function;
    {
      const std::lock_guard lock(mutex_);
      if (!function_) return Closed();
      function = nb::borrow(function_);
    }
    const nb::object said = Asked(function, row);
    if (said.is_none()) return {};
    return Error{ErrorCode::kCorrupt, nb::cast<std::string>(said), ""};
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInternal, error.what(), ""};
  }
}

}  // namespace fullbore::loader
