// The waits in `next` of the script's iterators: core/waits.py.
#include <algorithm>

#include "hook/state.h"

namespace fullbore::hook {

namespace {

using record::EventKind;

// An iterator created this shortly before its first `next` (a `for` loop) is part of that wait: one record for both.
constexpr int64_t kSameWaitNs = 1'000'000;

PyTypeObject *epoch_type, *wait_type;

// What an iterator carries: its loader, and the time its creation took, which counts for the first batch.
struct Epoch {
  PyObject_HEAD PyObject* loader;
  long long id;
  long long begin, end;  // begin: 0 once the first batch came
  char tells_ready;
  PyObject* counter;
  PyObject* place;  // where in a batch its samples are counted; null until that is known and simple
  char is_leading;
};

// One `next` in progress.
struct Wait {
  PyObject_HEAD Thread* thread;
  Epoch* epoch;
  int outer_phase;
  long long ready;
  long long begin;
};

// Epoch(loader, begin, end, tells_ready=True)
PyObject* MakeEpoch(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* loader;
  long long begin, end;
  int tells_ready = 1;
  if (!PyArg_ParseTuple(args, "OLL|p", &loader, &begin, &end, &tells_ready)) return nullptr;
  Ref counter(PyObject_GetAttrString(loader, "counter"));
  Ref ident(counter ? PyObject_GetAttrString(loader, "id") : nullptr);
  const long long id = ident ? PyLong_AsLongLong(ident.get()) : -1;
  if (PyErr_Occurred()) return nullptr;
  auto* self = New<Epoch>(type);
  if (self == nullptr) return nullptr;
  self->loader = NewRef(loader);
  self->id = id;
  self->begin = begin;
  self->end = end;
  self->tells_ready = static_cast<char>(tells_ready);
  self->counter = counter.release();
  return reinterpret_cast<PyObject*>(self);
}

void FreeEpoch(PyObject* self) {
  auto* epoch = reinterpret_cast<Epoch*>(self);
  Py_XDECREF(epoch->loader);
  Py_XDECREF(epoch->counter);
  Py_XDECREF(epoch->place);
  Free(self);
}

void FreeWait(PyObject* self) {
  auto* wait = reinterpret_cast<Wait*>(self);
  Py_XDECREF(reinterpret_cast<PyObject*>(wait->thread));
  Py_XDECREF(reinterpret_cast<PyObject*>(wait->epoch));
  Free(self);
}

PyMemberDef epoch_members[] = {{"loader", T_OBJECT, offsetof(Epoch, loader), READONLY, nullptr},
                               {"begin", T_LONGLONG, offsetof(Epoch, begin), 0, nullptr},
                               {"end", T_LONGLONG, offsetof(Epoch, end), 0, nullptr},
                               {}};
PyType_Slot epoch_slots[] = {{Py_tp_new, reinterpret_cast<void*>(MakeEpoch)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(FreeEpoch)},
                             {Py_tp_members, epoch_members},
                             {}};
PyType_Spec epoch_spec = {"_native.Epoch", sizeof(Epoch), 0, Py_TPFLAGS_DEFAULT, epoch_slots};

PyMemberDef wait_members[] = {{"thread", T_OBJECT, offsetof(Wait, thread), READONLY, nullptr},
                              {"epoch", T_OBJECT, offsetof(Wait, epoch), READONLY, nullptr},
                              {"ready", T_LONGLONG, offsetof(Wait, ready), READONLY, nullptr},
                              {"begin", T_LONGLONG, offsetof(Wait, begin), READONLY, nullptr},
                              {}};
PyType_Slot wait_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(FreeWait)}, {Py_tp_members, wait_members}, {}};
PyType_Spec wait_spec = {"_native.Wait", sizeof(Wait), 0, Py_TPFLAGS_DEFAULT, wait_slots};

// The iterator's epoch; made by `new_epoch` for one that other code than the loader's __iter__ made.
Ref EpochOf(State* state, PyObject* iterator, PyObject* loader_of) {
  Ref fields(PyObject_GetAttr(iterator, names.dict));
  if (!fields) return {};
  PyObject* found = PyDict_Check(fields.get()) ? PyDict_GetItemWithError(fields.get(), names.epoch) : nullptr;
  if (found != nullptr && PyObject_TypeCheck(found, epoch_type)) return Ref(NewRef(found));
  if (PyErr_Occurred()) return {};
  Ref made(PyObject_CallMethod(reinterpret_cast<PyObject*>(state), "new_epoch", "OO", iterator, loader_of));
  if (made && !PyObject_TypeCheck(made.get(), epoch_type)) {
    PyErr_SetString(PyExc_TypeError, "new_epoch() made no epoch");
    return {};
  }
  return made;
}

bool AskReady(Wait& wait, PyObject* iterator) {
  wait.ready = -1;
  if (!wait.epoch->tells_ready) return true;
  Ref count(PyObject_CallMethod(wait.epoch->loader, "ready", "(O)", iterator));
  if (count) wait.ready = PyLong_AsLongLong(count.get());
  return count && !PyErr_Occurred();
}

// The product of the sizes of a shape: how large a batch is. 0 where the shape is no tuple of numbers.
long long ElementsOf(PyObject* shape) {
  if (!PyTuple_Check(shape)) return 0;
  long long elements = 1;
  for (Py_ssize_t i = 0; i < PyTuple_Size(shape); ++i) {
    PyObject* size = PyTuple_GetItem(shape, i);  // borrowed
    const long long length = PyLong_Check(size) ? PyLong_AsLongLong(size) : 0;
    if (__builtin_mul_overflow(elements, length, &elements)) return 0;
  }
  return std::max(elements, 0LL);
}

// The samples at the known place, -1 where a batch has no such place.
long long CountAt(const Epoch& epoch, PyObject* batch, long long& elements) {
  Ref value(NewRef(batch));
  const Py_ssize_t depth = PyTuple_Size(epoch.place);
  for (Py_ssize_t i = 0; value && i < depth; ++i)
    value = Ref(PyObject_GetItem(value.get(), PyTuple_GetItem(epoch.place, i)));
  if (value && !epoch.is_leading) return PyObject_Size(value.get());
  Ref shape(value ? PyObject_GetAttr(value.get(), names.shape) : nullptr);
  Ref size(shape ? PySequence_GetItem(shape.get(), 0) : nullptr);
  if (size) elements = ElementsOf(shape.get());
  return size ? PyLong_AsLongLong(size.get()) : -1;
}

// What core/batch.py says: it learns the place with the first batch. Tokens are counted by it alone.
bool CountSlowly(Epoch& epoch, PyObject* batch, long long& samples, long long& elements) {
  Ref counted(PyObject_CallMethod(epoch.counter, "count", "(O)", batch));
  if (!counted || !PyArg_ParseTuple(counted.get(), "LL", &samples, &elements)) return false;
  if (epoch.place != nullptr) return true;
  Ref place(PyObject_GetAttrString(epoch.counter, "simple_place"));
  Ref leading(place ? PyObject_GetAttrString(epoch.counter, "is_leading") : nullptr);
  if (!leading) return false;
  epoch.is_leading = PyObject_IsTrue(leading.get()) == 1 ? 1 : 0;
  if (PyTuple_Check(place.get())) epoch.place = place.release();
  return true;
}

bool Count(State* state, Epoch& epoch, PyObject* batch, long long& samples, long long& elements) {
  if (epoch.place != nullptr) {
    samples = CountAt(epoch, batch, elements);
    if (samples >= 0) return true;
    if (PyErr_Occurred() && !Dismiss(state)) return false;
  }
  return CountSlowly(epoch, batch, samples, elements);
}

}  // namespace

PyObject* EnterNext(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto* state = reinterpret_cast<State*>(self);
  if (!state->on) return None();
  Thread* thread = Takes(count, 2) ? Here(state) : nullptr;
  if (thread == nullptr) return Fail(state, "next");
  if (thread->in_next) return None();
  if (RingOf(state) == nullptr && !Ref(PyObject_CallMethodObjArgs(self, names.open, nullptr)))
    return Fail(state, "next");
  if (state->is_worker) return None();
  Ref epoch = EpochOf(state, args[0], args[1]);
  Ref made(epoch ? reinterpret_cast<PyObject*>(New<Wait>(wait_type)) : nullptr);
  if (!made) return Fail(state, "next");
  auto* wait = reinterpret_cast<Wait*>(made.get());
  wait->epoch = reinterpret_cast<Epoch*>(epoch.release());
  if (!AskReady(*wait, args[0])) return Fail(state, "next");
  wait->thread = reinterpret_cast<Thread*>(NewRef(reinterpret_cast<PyObject*>(thread)));
  wait->outer_phase = thread->phase;
  thread->phase = static_cast<int>(EventKind::kNext);
  thread->loader = wait->epoch->id;
  thread->in_next = 1;
  wait->begin = ClockNs();
  return made.release();
}

PyObject* LeaveNext(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const int64_t end = ClockNs();
  auto* state = reinterpret_cast<State*>(self);
  if (!Takes(count, 3) || !PyObject_TypeCheck(args[0], wait_type)) return Fail(state, "next");
  auto* wait = reinterpret_cast<Wait*>(args[0]);
  Thread* thread = wait->thread;
  Epoch& epoch = *wait->epoch;
  thread->in_next = 0;
  thread->phase = wait->outer_phase;
  if (!state->on) return None();
  const bool got = args[2] == Py_True;
  long long samples = 0, elements = 0;
  if (got && !Count(state, epoch, args[1], samples, elements)) return Fail(state, "next");
  int64_t begin = wait->begin;
  const int first = epoch.begin != 0;
  if (first) {
    if (begin - epoch.end < kSameWaitNs) {
      begin = epoch.begin;
    } else if (!Write(state, thread, {EventKind::kNext, epoch.id, epoch.begin, epoch.end, 0, -1, 1})) {
      return Fail(state, "next");
    }
    epoch.begin = 0;
  }
  if (!Write(state, thread, {EventKind::kNext, epoch.id, begin, end, samples, wait->ready, first, elements}))
    return Fail(state, "next");
  if (got && thread->fed_by != epoch.loader) Ref(std::exchange(thread->fed_by, NewRef(epoch.loader)));
  return None();
}

bool AddWaits(PyObject* module) {
  epoch_type = AddType(module, "Epoch", epoch_spec);
  wait_type = AddType(module, "Wait", wait_spec);
  return epoch_type && wait_type;
}

}  // namespace fullbore::hook
