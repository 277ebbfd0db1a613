// A function of the script's or of its framework, with the hook's work before and after it: one call from Python instead
// of two and a `try`, which is most of what they cost after a framework's own code has filled the caches.
#include "hook/state.h"

namespace fullbore::hook {

namespace {

// The script's own exception, put aside while the hook ends what it began. If another one of the script's comes up
// meanwhile, from its function for a signal, that one goes on, as it would from a `finally`.
class PutAside {
 public:
  PutAside() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~PutAside() {
    if (type_ == nullptr) return;
    if (!PyErr_Occurred()) {
      PyErr_Restore(type_, value_, traceback_);
      return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyErr_NormalizeException(&type_, &value_, &traceback_);
    if (traceback_ != nullptr) PyException_SetTraceback(value_, traceback_);
    const Ref old_type(type_), old_traceback(traceback_);
    Ref context(value_);
    if (value != value_) PyException_SetContext(value, context.release());  // which takes the reference
    PyErr_Restore(type, value, traceback);
  }
  PutAside(const PutAside&) = delete;
  PutAside& operator=(const PutAside&) = delete;

 private:
  PyObject *type_, *value_, *traceback_;
};

// What `function` returned, unless ending it was interrupted.
PyObject* Ended(Ref result, Ref done) {
  if (!done && result) return nullptr;
  return result.release();
}

}  // namespace

PyObject* Run(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto* state = reinterpret_cast<State*>(self);
  if (!Takes(count, 4)) return nullptr;
  if (!state->on || state->is_worker) return PyObject_Call(args[1], args[2], args[3]);
  Thread* thread = Here(state);
  const long kind = thread ? PyLong_AsLong(args[0]) : 0;
  if (PyErr_Occurred()) {
    if (!Ref(Fail(state, "entering a phase"))) return nullptr;
    return PyObject_Call(args[1], args[2], args[3]);
  }
  const int outer = std::exchange(thread->phase, static_cast<int>(kind));
  const int64_t begin = ClockNs();
  Ref result(PyObject_Call(args[1], args[2], args[3]));
  const int64_t end = ClockNs();
  thread->phase = outer;
  Ref done;
  {
    const PutAside exception;
    const bool written = Write(state, thread, {static_cast<record::EventKind>(kind), 0, begin, end});
    done = Ref(written ? None() : Fail(state, "leaving a phase"));
  }
  return Ended(std::move(result), std::move(done));
}

PyObject* RunForward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!Takes(count, 3)) return nullptr;
  PyObject* module = PyTuple_GetItem(args[1], 0);
  if (module == nullptr) return nullptr;
  const Ref call(EnterForward(self, &module, 1));
  if (!call) return nullptr;
  Ref result(PyObject_Call(args[0], args[1], args[2]));
  if (call.get() == Py_None) return result.release();
  Ref done;
  {
    const PutAside exception;
    PyObject* entered = call.get();
    done = Ref(LeaveForward(self, &entered, 1));
  }
  return Ended(std::move(result), std::move(done));
}

PyObject* RunNext(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!Takes(count, 3)) return nullptr;
  PyObject *take = args[0], *loader_of = args[1], *iterator = args[2];
  PyObject* asked[] = {iterator, loader_of};
  const Ref wait(EnterNext(self, asked, 2));
  if (!wait) return nullptr;
  Ref batch(PyObject_CallFunctionObjArgs(take, iterator, nullptr));
  if (wait.get() == Py_None) return batch.release();
  Ref done;
  {
    const PutAside exception;
    PyObject* given[] = {wait.get(), batch ? batch.get() : Py_None, batch ? Py_True : Py_False};
    done = Ref(LeaveNext(self, given, 3));
  }
  return Ended(std::move(batch), std::move(done));
}

PyObject* RunFetch(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!Takes(count, 3)) return nullptr;
  PyObject *fetch = args[0], *fetcher = args[1], *asked = args[2];
  const Ref readings(EnterFetch(self, &fetcher, 1));
  if (!readings) return nullptr;
  Ref batch(PyObject_CallFunctionObjArgs(fetch, fetcher, asked, nullptr));
  if (readings.get() == Py_None) return batch.release();
  Ref done;
  {
    const PutAside exception;
    PyObject* given[] = {fetcher, readings.get(), asked, batch ? Py_True : Py_False};
    done = Ref(LeaveFetch(self, given, 4));
  }
  return Ended(std::move(batch), std::move(done));
}

}  // namespace fullbore::hook
