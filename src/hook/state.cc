#include "hook/state.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <utility>

namespace fullbore::hook {

PyTypeObject *ring_type, *thread_type, *state_type;

namespace {

// The calling thread's object, found without a look into the dictionary.
struct Known {
  const State* state = nullptr;
  uint64_t generation = 0;
  Thread* thread = nullptr;
};
constinit thread_local Known known;

// A collection on a thread that the hook had not met yet: told once it has. A step may begin with it.
struct Collection {
  int64_t begin_ns = 0, end_ns = 0;
};
constinit thread_local Collection untold;

constexpr int64_t kGarbageNs = 1'000'000;  // a collection shorter than this is not worth a record

PyObject* MakeRing(PyTypeObject* type, PyObject* args, PyObject*) {
  int fd;
  unsigned header_bytes, capacity;
  if (!PyArg_ParseTuple(args, "iII", &fd, &header_bytes, &capacity)) return nullptr;
  if (capacity == 0) return PyErr_Format(PyExc_ValueError, "a ring without records");
  const size_t bytes = header_bytes + size_t{capacity} * record::kChannelRecordBytes;
  void* map =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return PyErr_SetFromErrno(PyExc_OSError);
  auto* self = New<RingObject>(type);
  if (self == nullptr) {
    munmap(map, bytes);
    return nullptr;
  }
  self->ring = new (self->memory) Ring(map, header_bytes, capacity);
  self->map = map;
  self->bytes = bytes;
  return reinterpret_cast<PyObject*>(self);
}

void FreeRing(PyObject* self) {
  auto* ring = reinterpret_cast<RingObject*>(self);
  if (ring->map) munmap(ring->map, ring->bytes);
  Free(self);
}

// record(kind, ident, thread, begin, end, a=0, b=0, c=0, d=0)
PyObject* Record(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  long long values[9] = {};
  if (count < 5 || count > 9)
    return PyErr_Format(PyExc_TypeError, "record() takes 5 to 9 arguments, not %zd", count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    values[i] = PyLong_AsLongLong(args[i]);
    if (values[i] == -1 && PyErr_Occurred()) return nullptr;
  }
  record::ChannelRecord record{};
  record.kind = static_cast<uint16_t>(values[0]);
  record.id = static_cast<uint16_t>(values[1]);
  record.thread = static_cast<uint32_t>(values[2]);
  record.begin_ns = values[3];
  record.end_ns = values[4];
  record.a = values[5];
  record.b = values[6];
  record.c = values[7];
  record.d = values[8];
  reinterpret_cast<RingObject*>(self)->ring->Write(record);
  return None();
}

PyObject* Written(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(reinterpret_cast<RingObject*>(self)->ring->written());
}

PyMethodDef ring_methods[] = {
    Method("record", Record, "record(kind, ident, thread, begin, end, a=0, b=0, c=0, d=0)"),
    {"written", Written, METH_NOARGS, "how many records were written"},
    {}};
PyType_Slot ring_slots[] = {{Py_tp_new, reinterpret_cast<void*>(MakeRing)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(FreeRing)},
                            {Py_tp_methods, ring_methods},
                            {}};
PyType_Spec ring_spec = {"_native.Ring", sizeof(RingObject), 0, Py_TPFLAGS_DEFAULT, ring_slots};

PyObject* MakeThread(PyTypeObject* type, PyObject* args, PyObject*) {
  unsigned number;
  if (!PyArg_ParseTuple(args, "I", &number)) return nullptr;
  auto* self = New<Thread>(type);
  if (self == nullptr) return nullptr;
  self->number = number;
  self->fed_by = None();
  self->open_steps = PyList_New(0);
  if (self->open_steps == nullptr) {
    Py_DECREF(reinterpret_cast<PyObject*>(self));
    return nullptr;
  }
  return reinterpret_cast<PyObject*>(self);
}

void FreeThread(PyObject* self) {
  auto* thread = reinterpret_cast<Thread*>(self);
  Py_XDECREF(thread->fed_by);
  Py_XDECREF(thread->open_steps);
  Free(self);
}

PyObject* CloseFiles(PyObject* self, PyObject*) {
  reinterpret_cast<Thread*>(self)->schedstat.Close();
  return None();
}

PyMemberDef thread_members[] = {{"number", T_UINT, offsetof(Thread, number), READONLY, nullptr},
                                {"phase", T_INT, offsetof(Thread, phase), 0, nullptr},
                                {"in_next", T_BOOL, offsetof(Thread, in_next), 0, nullptr},
                                {"in_fetch", T_BOOL, offsetof(Thread, in_fetch), 0, nullptr},
                                {"in_forward", T_BOOL, offsetof(Thread, in_forward), 0, nullptr},
                                {"loader", T_LONGLONG, offsetof(Thread, loader), 0, nullptr},
                                {"fed_by", T_OBJECT, offsetof(Thread, fed_by), 0, nullptr},
                                {"open_steps", T_OBJECT, offsetof(Thread, open_steps), READONLY, nullptr},
                                {}};
PyMethodDef thread_methods[] = {{"close_files", CloseFiles, METH_NOARGS, "Those of a parent, after a fork."},
                                {}};
PyType_Slot thread_slots[] = {{Py_tp_new, reinterpret_cast<void*>(MakeThread)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(FreeThread)},
                              {Py_tp_members, thread_members},
                              {Py_tp_methods, thread_methods},
                              {}};
PyType_Spec thread_spec = {"_native.Thread", sizeof(Thread), 0, Py_TPFLAGS_DEFAULT, thread_slots};

PyObject* Enter(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto* state = reinterpret_cast<State*>(self);
  if (!state->on || state->is_worker) return None();
  Thread* thread = Takes(count, 1) ? Here(state) : nullptr;
  if (thread == nullptr) return Fail(state, "entering a phase");
  const long kind = PyLong_AsLong(args[0]);
  if (kind == -1 && PyErr_Occurred()) return Fail(state, "entering a phase");
  Ref span(PyTuple_New(3));
  Ref outer(PyLong_FromLong(thread->phase));
  Ref begin(PyLong_FromLongLong(ClockNs()));
  if (!span || !outer || !begin) return Fail(state, "entering a phase");
  thread->phase = static_cast<int>(kind);
  PyTuple_SetItem(span.get(), 0, NewRef(reinterpret_cast<PyObject*>(thread)));
  PyTuple_SetItem(span.get(), 1, outer.release());
  PyTuple_SetItem(span.get(), 2, begin.release());
  return span.release();
}

// Whether the arguments were understood: (span, kind, ident=0, a=0, b=0), by name or by place.
bool ReadLeave(PyObject* const* args, Py_ssize_t count, PyObject* keywords, long long (&values)[4]) {
  constexpr const char* kNames[] = {"kind", "ident", "a", "b"};
  const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  if (count < 1 || count > 5) return Takes(count, 5);
  for (Py_ssize_t i = 1; i < count + named; ++i) {
    Py_ssize_t place = i - 1;
    if (i >= count) {
      PyObject* name = PyTuple_GetItem(keywords, i - count);
      for (place = 0; place < 4 && PyUnicode_CompareWithASCIIString(name, kNames[place]) != 0; ++place) {
      }
      if (place == 4) return PyErr_Format(PyExc_TypeError, "leave() has no argument %R", name), false;
    }
    values[place] = PyLong_AsLongLong(args[i]);
    if (values[place] == -1 && PyErr_Occurred()) return false;
  }
  return true;
}

PyObject* Leave(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  const int64_t end = ClockNs();
  auto* state = reinterpret_cast<State*>(self);
  long long values[4] = {};
  if (!ReadLeave(args, count, keywords, values)) return Fail(state, "leaving a phase");
  PyObject* span = args[0];
  if (!PyTuple_Check(span) || PyTuple_Size(span) != 3 ||
      !PyObject_TypeCheck(PyTuple_GetItem(span, 0), thread_type)) {
    PyErr_SetString(PyExc_TypeError, "leave() of something that enter() did not return");
    return Fail(state, "leaving a phase");
  }
  auto* thread = reinterpret_cast<Thread*>(PyTuple_GetItem(span, 0));
  thread->phase = static_cast<int>(PyLong_AsLong(PyTuple_GetItem(span, 1)));
  const int64_t begin = PyLong_AsLongLong(PyTuple_GetItem(span, 2));
  if (PyErr_Occurred()) return Fail(state, "leaving a phase");
  const Event event{static_cast<record::EventKind>(values[0]), values[1], begin, end, values[2], values[3]};
  return Write(state, thread, event) ? None() : Fail(state, "leaving a phase");
}

void FreeState(PyObject* self) {
  auto* state = reinterpret_cast<State*>(self);
  for (PyObject* held : {state->record, state->channel, state->threads, state->is_grad_enabled,
                         state->about_pass, state->usual_thread, state->usual_loader, state->known_record})
    Py_XDECREF(held);
  Free(self);
}

PyObject* GetThreads(PyObject* self, void*) {
  PyObject* threads = reinterpret_cast<State*>(self)->threads;
  return NewRef(threads ? threads : Py_None);
}

// New ones in a forked child: no thread finds its old object any more.
int SetThreads(PyObject* self, PyObject* threads, void*) {
  auto* state = reinterpret_cast<State*>(self);
  if (threads == nullptr || !PyDict_Check(threads)) {
    PyErr_SetString(PyExc_TypeError, "threads is a dictionary");
    return -1;
  }
  ++state->generation;
  Ref old(std::exchange(state->threads, NewRef(threads)));
  return 0;
}

void WriteCollection(Ring& ring, const Collection& collection) {
  ring.Write({static_cast<uint16_t>(record::EventKind::kOther),
              static_cast<uint16_t>(record::OtherKind::kGarbageCollection), known.thread->number,
              collection.begin_ns, collection.end_ns, 0, 0, 0, 0, 0});
}

// note_collection(phase, info), a callback of gc.callbacks. It runs no Python code: Python drops what such a callback
// raises, and would run the script's functions for signals in there.
PyObject* NoteCollection(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const int64_t now = ClockNs();
  auto* state = reinterpret_cast<State*>(self);
  if (count < 1 || !PyUnicode_Check(args[0])) return None();
  if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
    state->garbage_begin = now;
    return None();
  }
  const int64_t taken = now - state->garbage_begin;
  state->garbage_ns += taken;
  // Only on a thread that is known, and into a ring: all else would be Python code.
  Ring* ring = state->on && taken >= kGarbageNs ? RingOf(state) : nullptr;
  if (ring == nullptr) return None();
  if (known.state == state && known.generation == state->generation)
    WriteCollection(*ring, {state->garbage_begin, now});
  else if (untold.end_ns == 0)
    untold = {state->garbage_begin, now};
  return None();
}

PyMemberDef state_members[] = {{"on", T_BOOL, offsetof(State, on), 0, nullptr},
                               {"is_worker", T_BOOL, offsetof(State, is_worker), 0, nullptr},
                               {"times_cores", T_BOOL, offsetof(State, times_cores), 0, nullptr},
                               {"steps", T_LONGLONG, offsetof(State, steps), 0, nullptr},
                               {"record", T_OBJECT_EX, offsetof(State, record), 0, nullptr},
                               {"channel", T_OBJECT, offsetof(State, channel), 0, nullptr},
                               {"is_grad_enabled", T_OBJECT, offsetof(State, is_grad_enabled), 0, nullptr},
                               {"about_pass", T_OBJECT, offsetof(State, about_pass), 0, nullptr},
                               {"usual_optimizer", T_ULONGLONG, offsetof(State, usual_optimizer), 0, nullptr},
                               {"usual_thread", T_OBJECT, offsetof(State, usual_thread), 0, nullptr},
                               {"usual_loader", T_OBJECT, offsetof(State, usual_loader), 0, nullptr},
                               {"garbage_ns", T_LONGLONG, offsetof(State, garbage_ns), 0, nullptr},
                               {"usual_until", T_LONGLONG, offsetof(State, usual_until), 0, nullptr},
                               {}};
PyGetSetDef state_getters[] = {{"threads", GetThreads, SetThreads, nullptr, nullptr}, {}};
PyMethodDef state_methods[] = {
    Method("enter", Enter, "enter(kind): begins a phase of the calling thread"),
    Method("leave", Leave, "leave(span, kind, ident=0, a=0, b=0): ends and records it"),
    Method("note_collection", NoteCollection, "note_collection(phase, info): for gc.callbacks"),
    Method("enter_forward", EnterForward, "enter_forward(module)"),
    Method("leave_forward", LeaveForward, "leave_forward(what enter_forward returned)"),
    Method("enter_next", EnterNext, "enter_next(iterator, loader_of)"),
    Method("leave_next", LeaveNext, "leave_next(wait, batch, got)"),
    Method("enter_step", EnterStep, "enter_step(optimizer)"),
    Method("leave_step", LeaveStep, "leave_step(optimizer)"),
    Method("enter_fetch", EnterFetch, "enter_fetch(fetcher)"),
    Method("leave_fetch", LeaveFetch, "leave_fetch(fetcher, readings, asked, got)"),
    Method("run", Run, "run(kind, function, args, kwargs): calls it inside a phase"),
    Method("run_forward", RunForward, "run_forward(function, args, kwargs): args[0] is the module"),
    Method("run_next", RunNext, "run_next(take, loader_of, iterator)"),
    Method("run_fetch", RunFetch, "run_fetch(fetch, fetcher, asked)"),
    {}};
PyType_Slot state_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(FreeState)},
                             {Py_tp_members, state_members},
                             {Py_tp_getset, state_getters},
                             {Py_tp_methods, state_methods},
                             {}};
PyType_Spec state_spec = {"_native.State", sizeof(State), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          state_slots};

}  // namespace

int64_t WithoutCoreNs(Thread* thread) {
  const int fd = thread->schedstat.Get("/proc/thread-self/schedstat");
  char text[80];
  const ssize_t size = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, 0);
  if (size <= 0) return -1;
  text[size] = '\0';
  char *first_end, *end;
  std::strtoll(text, &first_end, 10);
  const long long waited = std::strtoll(first_end, &end, 10);
  return end == first_end ? -1 : waited;
}

// The outermost call of a module: returns the thread, which holds the rest.
PyObject* EnterForward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto* state = reinterpret_cast<State*>(self);
  if (!state->on || state->is_worker) return None();
  Thread* thread = Takes(count, 1) ? Here(state) : nullptr;
  if (thread == nullptr) return Fail(state, "forward");
  if (thread->in_forward || thread->in_next) return None();
  Ref training(PyObject_GetAttr(args[0], names.training));
  int trains = training ? PyObject_IsTrue(training.get()) : -1;
  if (trains == 1) {
    Ref enabled(PyObject_CallObject(state->is_grad_enabled, nullptr));
    trains = enabled ? PyObject_IsTrue(enabled.get()) : -1;
  }
  if (trains < 0) return Fail(state, "forward");
  long long about = 0;
  if (trains == 0) {
    Ref said(PyObject_CallFunctionObjArgs(state->about_pass, args[0], nullptr));
    about = said ? PyLong_AsLongLong(said.get()) : -1;
    if (about == -1 && PyErr_Occurred()) return Fail(state, "forward");
  }
  thread->forward_training = trains;
  thread->forward_about = about;
  thread->forward_outer = thread->phase;
  thread->phase = static_cast<int>(record::EventKind::kForward);
  thread->in_forward = 1;
  thread->forward_begin = ClockNs();
  return NewRef(reinterpret_cast<PyObject*>(thread));
}

PyObject* LeaveForward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const int64_t end = ClockNs();
  auto* state = reinterpret_cast<State*>(self);
  if (!Takes(count, 1) || !PyObject_TypeCheck(args[0], thread_type)) return Fail(state, "forward");
  auto* thread = reinterpret_cast<Thread*>(args[0]);
  thread->in_forward = 0;
  thread->phase = thread->forward_outer;
  const Event event{record::EventKind::kForward, 0, thread->forward_begin, end,
                    thread->forward_training,    0, thread->forward_about};
  return Write(state, thread, event) ? None() : Fail(state, "forward");
}

Thread* Here(State* state) {
  if (known.state == state && known.generation == state->generation) return known.thread;
  Ref found(PyObject_CallMethodObjArgs(reinterpret_cast<PyObject*>(state), names.here, nullptr));
  if (!found) return nullptr;
  if (!PyObject_TypeCheck(found.get(), thread_type)) {
    PyErr_SetString(PyExc_TypeError, "here() returned no thread");
    return nullptr;
  }
  // Kept for good, as `threads` keeps it.
  known = {state, state->generation, reinterpret_cast<Thread*>(found.release())};
  if (const Collection collection = std::exchange(untold, {}); collection.end_ns != 0) {
    if (Ring* ring = RingOf(state)) WriteCollection(*ring, collection);
  }
  return known.thread;
}

Ring* RingOf(State* state) {
  if (state->record == state->known_record) return state->known_ring;
  PyObject* record = state->record;
  state->known_ring = nullptr;
  if (record != nullptr && PyCFunction_Check(record) &&
      PyCFunction_GetFunction(record) == ring_methods[0].ml_meth)
    state->known_ring = reinterpret_cast<RingObject*>(PyCFunction_GetSelf(record))->ring;
#ifdef Py_GIL_DISABLED  // another thread may be writing to the old one: that one is never let go
  Py_XINCREF(state->known_record);
#endif
  Py_XINCREF(record);
  Ref old(std::exchange(state->known_record, record));
  return state->known_ring;
}

bool Write(State* state, const Thread* thread, const Event& event) {
  Ring* ring = RingOf(state);
  if (ring == nullptr) {  // dropped, or taken by something else
    Ref done(PyObject_CallFunction(state->record, "iLILLLLLL", static_cast<int>(event.kind), event.id,
                                   thread->number, static_cast<long long>(event.begin),
                                   static_cast<long long>(event.end), static_cast<long long>(event.a),
                                   static_cast<long long>(event.b), static_cast<long long>(event.c),
                                   static_cast<long long>(event.d)));
    return static_cast<bool>(done);
  }
  ring->Write({static_cast<uint16_t>(event.kind), static_cast<uint16_t>(event.id), thread->number,
               event.begin, event.end, event.a, event.b, event.c, event.d, 0});
  return true;
}

namespace {

// Asks `method` of the hook, with `where` if there is one, about the exception that is set: true, and it is gone, unless
// the answer is `passes`. What another of the script's exceptions raises in the middle is passed on in its place.
bool Judged(State* state, const char* method, const char* where, bool passes) {
  PyObject *type, *value, *traceback;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Ref held_type(type), held_value(value), held_traceback(traceback);
  auto* self = reinterpret_cast<PyObject*>(state);
  const Ref answer(where ? PyObject_CallMethod(self, method, "sO", where, value)
                         : PyObject_CallMethod(self, method, "O", value));
  if (!answer) {
    // The script's stack or memory may be at its end; nothing else comes from us.
    if (!PyErr_ExceptionMatches(PyExc_RecursionError) && !PyErr_ExceptionMatches(PyExc_MemoryError))
      return false;
    PyErr_Clear();
    return true;
  }
  if ((answer.get() == Py_True) != passes) return true;
  PyErr_Restore(held_type.release(), held_value.release(), held_traceback.release());
  return false;
}

}  // namespace

PyObject* Fail(State* state, const char* where) {
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "wrong arguments");
  return Judged(state, "fail", where, false) ? None() : nullptr;
}

bool Dismiss(State* state) { return Judged(state, "is_the_scripts", nullptr, true); }

bool AddState(PyObject* module) {
  ring_type = AddType(module, "Ring", ring_spec);
  thread_type = AddType(module, "Thread", thread_spec);
  state_type = AddType(module, "State", state_spec);
  return ring_type && thread_type && state_type;
}

}  // namespace fullbore::hook
