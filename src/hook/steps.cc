// The steps of optimizers: core/steps.py, which also says which ones are usual.
#include "hook/state.h"

namespace fullbore::hook {

namespace {

using record::EventKind;

// Whether the entry is this optimizer's: by its id, because the entry must not keep the script's object alive.
bool IsOf(PyObject* step, PyObject* optimizer) {
  PyObject* ident = PyTuple_GetItem(step, 0);
  return PyLong_Check(ident) && PyLong_AsVoidPtr(ident) == optimizer;
}

// A step that ended by an exception left its entry: that one and those inside it are over.
bool Forget(Thread* thread, PyObject* optimizer) {
  const Py_ssize_t open = PyList_Size(thread->open_steps);
  for (Py_ssize_t i = 0; i < open; ++i) {
    PyObject* step = PyList_GetItem(thread->open_steps, i);
    if (!IsOf(step, optimizer)) continue;
    thread->phase = static_cast<int>(PyLong_AsLong(PyTuple_GetItem(step, 2)));
    return PyList_SetSlice(thread->open_steps, i, open, nullptr) == 0;
  }
  return true;
}

bool IsUsual(const State* state, const Thread* thread, PyObject* optimizer) {
  return reinterpret_cast<PyObject*>(const_cast<Thread*>(thread)) == state->usual_thread &&
         reinterpret_cast<uintptr_t>(optimizer) == state->usual_optimizer &&
         state->steps + 1 < state->usual_until && thread->fed_by == state->usual_loader;
}

// False with an exception set.
bool TimeCores(State* state, Thread* thread, int64_t end) {
  if (!state->times_cores) return true;
  const int64_t cpu_ns = ClockNs(CLOCK_PROCESS_CPUTIME_ID), own_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID);
  const int64_t without_ns = WithoutCoreNs(thread);
  return without_ns < 0 || Write(state, thread, {EventKind::kCores, 0, end, end, without_ns, cpu_ns, own_ns});
}

}  // namespace

PyObject* EnterStep(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto* state = reinterpret_cast<State*>(self);
  if (!state->on) return None();
  if (RingOf(state) == nullptr && !Ref(PyObject_CallMethodObjArgs(self, names.open, nullptr)))
    return Fail(state, "optimizer step");
  Thread* thread = Takes(count, 1) ? Here(state) : nullptr;
  if (thread == nullptr || !Forget(thread, args[0])) return Fail(state, "optimizer step");
  Ref step(
      Py_BuildValue("NLi", PyLong_FromVoidPtr(args[0]), static_cast<long long>(ClockNs()), thread->phase));
  if (!step || PyList_Append(thread->open_steps, step.get()) != 0) return Fail(state, "optimizer step");
  thread->phase = static_cast<int>(EventKind::kOptimizer);
  return None();
}

PyObject* LeaveStep(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const int64_t end = ClockNs();
  auto* state = reinterpret_cast<State*>(self);
  if (!state->on) return None();
  Thread* thread = Takes(count, 1) ? Here(state) : nullptr;
  if (thread == nullptr) return Fail(state, "optimizer step");
  const Py_ssize_t open = PyList_Size(thread->open_steps);
  PyObject* step = open > 0 ? PyList_GetItem(thread->open_steps, open - 1) : nullptr;
  if (step == nullptr || !IsOf(step, args[0])) return None();
  const int64_t begin = PyLong_AsLongLong(PyTuple_GetItem(step, 1));
  thread->phase = static_cast<int>(PyLong_AsLong(PyTuple_GetItem(step, 2)));
  if (PyErr_Occurred() || PyList_SetSlice(thread->open_steps, open - 1, open, nullptr) != 0)
    return Fail(state, "optimizer step");
  if (open > 1) return None();  // part of the outer one's step
  if (!TimeCores(state, thread, end)) return Fail(state, "optimizer step");
  if (IsUsual(state, thread, args[0])) {
    if (!Write(state, thread, {EventKind::kOptimizer, 0, begin, end, 1}))
      return Fail(state, "optimizer step");
    ++state->steps;
    return None();
  }
  Ref done(PyObject_CallMethod(self, "step_ended", "OOLL", args[0], thread, static_cast<long long>(begin),
                               static_cast<long long>(end)));
  return done ? None() : Fail(state, "optimizer step");
}

}  // namespace fullbore::hook
