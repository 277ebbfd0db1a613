// Between the loader's types and Python's objects. Called with the interpreter held.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>

#include "fullbore/loader.h"

namespace fullbore::loader {

// Raises it as a fullbore.data exception; see python/fullbore/data/errors.py.
[[noreturn]] void Raise(const Error& error);

// A text of ours for people: printable, whatever names it holds.
nanobind::str ToText(std::string_view text);
// A file's name as os.listdir has it: bytes that are no UTF-8 come back when it is used as a name.
nanobind::str ToFileName(std::string_view name);

// The memory itself, not a copy: an object with DLPack and the buffer protocol that keeps `owner`.
nanobind::object ToArray(const BatchField& field, const std::shared_ptr<void>& owner, int cuda_device = -1);
// [(name, array | [str] | [bytes]), ...]
nanobind::list ToFields(const Batch& batch);
nanobind::dict ToDict(const LoaderStats& stats);

// A Python function as the user's own stage: called as function(fields, sample_id, epoch, seed), where a
// field is (name, array | str | bytes); gives None, or why the sample is a bad one.
//
// Threads that the loader had to leave behind may outlive the interpreter, and a thread that asks for an
// interpreter that is gone takes the process down. So the function is let go of by Close, not with the last
// thread, and no call is under way when the interpreter ends: interpreter.h.
class PythonStage {
 public:
  static std::shared_ptr<PythonStage> Of(nanobind::object function);
  static RowFunction ToRowFunction(std::shared_ptr<PythonStage> stage);
  // With the interpreter held. No call begins from now on.
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
