// Conversions between the loader's types and Python objects. Called with the interpreter held.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>

#include "fullbore/loader.h"

namespace fullbore::loader {

// Raises the error as a fullbore.data exception; see python/fullbore/data/errors.py.
[[noreturn]] void Raise(const Error& error);

// One of our texts, for people: printable, whatever names it contains.
nanobind::str ToText(std::string_view text);
// A file name as os.listdir returns it: bytes that are not UTF-8 survive when it is used as a name.
nanobind::str ToFileName(std::string_view name);

// The memory itself, not a copy: an object with DLPack and the buffer protocol that keeps `owner` alive.
nanobind::object ToArray(const BatchField& field, const std::shared_ptr<void>& owner, int cuda_device = -1);
// [(name, array | [str] | [bytes]), ...]
nanobind::list ToFields(const Batch& batch);
nanobind::dict ToDict(const LoaderStats& stats);

// A Python function as the user stage: called as function(fields, sample_id, epoch, seed), where a field is
// (name, array | str | bytes); returns None, or why the sample is bad.
//
// Threads that the loader had to leave behind may outlive the interpreter, and a thread that asks for an
// interpreter that is gone takes the process down. So Close releases the function rather than the last
// thread, and no call is in progress when the interpreter ends: see interpreter.h.
class PythonStage {
 public:
  static std::shared_ptr<PythonStage> Of(nanobind::object function);
  static RowFunction ToRowFunction(std::shared_ptr<PythonStage> stage);
  // With the interpreter held. No call begins after this.
  void Close();
  // For the garbage collector: the function may hold the loader that holds it.
  int Visit(visitproc visit, void* arg) const;

 private:
  Result<void> Call(Row& row);
  std::mutex mutex_;
  PyObject* function_ = nullptr;  // protected by mutex_; owned
  std::atomic<bool> closed_{false};
};

}  // namespace fullbore::loader
