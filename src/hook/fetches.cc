// What a batch costs where it is fetched: torch/worker.py.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "hook/state.h"

namespace fullbore::hook {

namespace {

using record::EventKind;

constexpr int64_t kMaxSlowestUs = (int64_t{1} << 31) - 1;

PyTypeObject *clock_type, *items_type, *iterator_type, *collate_type;
// The thresholds, as torch/worker.py has them.
long long cheap_sample_ns, batches_judged, slow_batch_factor, long_fetch_ns, one_in;

// The readings of one fetcher's current batch, and averages over its earlier batches.
struct FetchClock {
  PyObject_HEAD long long collate_ns, slowest_ns, samples, batches;
  double mean_ns;                  // of a sample
  long long fetch_ns;              // of the batch before
  double cpu_share, waited_share;  // of a fetch's time, when last read
  long long loader;                // a worker's, -1 until it is known
  char times_samples;              // whether the stand-ins below are in their places
  char counts_collated;  // an iterable: how many samples came is known only once they are put together
};

PyObject* MakeClock(PyTypeObject* type, PyObject*, PyObject*) {
  auto* self = New<FetchClock>(type);
  if (self != nullptr) self->loader = -1;
  return reinterpret_cast<PyObject*>(self);
}

PyMemberDef clock_members[] = {{"collate_ns", T_LONGLONG, offsetof(FetchClock, collate_ns), 0, nullptr},
                               {"slowest_ns", T_LONGLONG, offsetof(FetchClock, slowest_ns), 0, nullptr},
                               {"samples", T_LONGLONG, offsetof(FetchClock, samples), 0, nullptr},
                               {"batches", T_LONGLONG, offsetof(FetchClock, batches), 0, nullptr},
                               {"mean_ns", T_DOUBLE, offsetof(FetchClock, mean_ns), 0, nullptr},
                               {"fetch_ns", T_LONGLONG, offsetof(FetchClock, fetch_ns), 0, nullptr},
                               {"cpu_share", T_DOUBLE, offsetof(FetchClock, cpu_share), 0, nullptr},
                               {"waited_share", T_DOUBLE, offsetof(FetchClock, waited_share), 0, nullptr},
                               {"times_samples", T_BOOL, offsetof(FetchClock, times_samples), 0, nullptr},
                               {"counts_collated", T_BOOL, offsetof(FetchClock, counts_collated), 0, nullptr},
                               {}};
PyType_Slot clock_slots[] = {{Py_tp_new, reinterpret_cast<void*>(MakeClock)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(Free)},
                             {Py_tp_members, clock_members},
                             {}};
PyType_Spec clock_spec = {"_native.FetchClock", sizeof(FetchClock), 0, Py_TPFLAGS_DEFAULT, clock_slots};

// Stands in for an object of the script's inside a fetcher. The Python class on top forwards everything else to it.
struct StandIn {
  PyObject_HEAD PyObject* inner;
  FetchClock* readings;
};

PyObject* MakeStandIn(PyTypeObject* type, PyObject*, PyObject*) {
  return reinterpret_cast<PyObject*>(New<StandIn>(type));
}

int InitStandIn(PyObject* self, PyObject* args, PyObject*) {
  PyObject *inner, *readings;
  if (!PyArg_ParseTuple(args, "OO!", &inner, clock_type, &readings)) return -1;
  auto* stand_in = reinterpret_cast<StandIn*>(self);
  Ref old(std::exchange(stand_in->inner, NewRef(inner)));
  Ref old_readings(reinterpret_cast<PyObject*>(
      std::exchange(stand_in->readings, reinterpret_cast<FetchClock*>(NewRef(readings)))));
  return 0;
}

int VisitStandIn(PyObject* self, visitproc visit, void* arg) {
  auto* stand_in = reinterpret_cast<StandIn*>(self);
  Py_VISIT(stand_in->inner);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int ClearStandIn(PyObject* self) {
  Py_CLEAR(reinterpret_cast<StandIn*>(self)->inner);
  return 0;
}

void FreeStandIn(PyObject* self) {
  PyObject_GC_UnTrack(self);
  ClearStandIn(self);
  Py_XDECREF(reinterpret_cast<PyObject*>(reinterpret_cast<StandIn*>(self)->readings));
  Free(self);
}

bool IsMade(const StandIn* stand_in) {
  if (stand_in->inner != nullptr && stand_in->readings != nullptr) return true;
  PyErr_SetString(PyExc_ValueError, "a stand-in for nothing");
  return false;
}

void NoteSample(FetchClock* readings, int64_t begin) {
  readings->slowest_ns = std::max<long long>(readings->slowest_ns, ClockNs() - begin);
}

PyObject* TimedItem(PyObject* self, PyObject* index) {
  auto* stand_in = reinterpret_cast<StandIn*>(self);
  if (!IsMade(stand_in)) return nullptr;
  const int64_t begin = ClockNs();
  PyObject* sample = PyObject_GetItem(stand_in->inner, index);
  if (sample != nullptr) NoteSample(stand_in->readings, begin);
  return sample;
}

PyObject* TimedNext(PyObject* self) {
  auto* stand_in = reinterpret_cast<StandIn*>(self);
  if (!IsMade(stand_in)) return nullptr;
  const int64_t begin = ClockNs();
  PyObject* sample = PyIter_Next(stand_in->inner);
  if (sample == nullptr) return nullptr;
  NoteSample(stand_in->readings, begin);
  ++stand_in->readings->samples;
  return sample;
}

PyObject* TimedCollate(PyObject* self, PyObject* args, PyObject* keywords) {
  auto* stand_in = reinterpret_cast<StandIn*>(self);
  if (!IsMade(stand_in)) return nullptr;
  FetchClock* readings = stand_in->readings;
  if (readings->counts_collated && readings->samples == 0 && PyTuple_Size(args) == 1) {
    PyObject* samples = PyTuple_GetItem(args, 0);
    if (PyList_Check(samples)) readings->samples = PyList_Size(samples);
  }
  const int64_t begin = ClockNs();
  PyObject* batch = PyObject_Call(stand_in->inner, args, keywords);
  readings->collate_ns += ClockNs() - begin;
  return batch;
}

PyMemberDef stand_in_members[] = {{"_inner", T_OBJECT, offsetof(StandIn, inner), READONLY, nullptr}, {}};
#define FULLBORE_STAND_IN_SLOTS                                                                          \
  {Py_tp_new, reinterpret_cast<void*>(MakeStandIn)}, {Py_tp_init, reinterpret_cast<void*>(InitStandIn)}, \
      {Py_tp_traverse, reinterpret_cast<void*>(VisitStandIn)},                                           \
      {Py_tp_clear, reinterpret_cast<void*>(ClearStandIn)},                                              \
      {Py_tp_dealloc, reinterpret_cast<void*>(FreeStandIn)}, {                                           \
    Py_tp_members, stand_in_members                                                                      \
  }
PyType_Slot items_slots[] = {
    FULLBORE_STAND_IN_SLOTS, {Py_mp_subscript, reinterpret_cast<void*>(TimedItem)}, {}};
PyType_Slot iterator_slots[] = {FULLBORE_STAND_IN_SLOTS,
                                {Py_tp_iter, reinterpret_cast<void*>(NewRef)},
                                {Py_tp_iternext, reinterpret_cast<void*>(TimedNext)},
                                {}};
PyType_Slot collate_slots[] = {
    FULLBORE_STAND_IN_SLOTS, {Py_tp_call, reinterpret_cast<void*>(TimedCollate)}, {}};
#undef FULLBORE_STAND_IN_SLOTS
constexpr unsigned kStandIn = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
PyType_Spec items_spec = {"_native.TimedItems", sizeof(StandIn), 0, kStandIn, items_slots};
PyType_Spec iterator_spec = {"_native.TimedIteration", sizeof(StandIn), 0, kStandIn, iterator_slots};
PyType_Spec collate_spec = {"_native.TimedCall", sizeof(StandIn), 0, kStandIn, collate_slots};

// The loader this fetch is for: the one asked in this thread, or the one this worker was started for. -1 with an
// exception set.
long long LoaderOf(State* state, Thread* thread, FetchClock* readings) {
  const bool is_open = RingOf(state) != nullptr;
  if (is_open && !state->is_worker) return thread->loader;
  if (is_open && readings->loader >= 0) return readings->loader;
  Ref found(PyObject_CallMethod(reinterpret_cast<PyObject*>(state), "loader_id", "(O)", thread));
  if (!found) return -1;
  return readings->loader = PyLong_AsLongLong(found.get());
}

bool WantsSystemTime(const FetchClock* readings) {
  return readings->fetch_ns >= long_fetch_ns || readings->batches % one_in == 0;
}

// Whether samples are worth timing one by one in the next batch.
bool WantsSamples(FetchClock* readings, double sample_ns) {
  ++readings->batches;
  const bool is_slow = sample_ns > static_cast<double>(slow_batch_factor) * readings->mean_ns;
  readings->mean_ns +=
      (sample_ns - readings->mean_ns) / static_cast<double>(std::min(readings->batches, 4 * batches_judged));
  if (readings->batches < batches_judged) return readings->times_samples;
  return is_slow || readings->mean_ns > static_cast<double>(cheap_sample_ns);
}

// -1 with an exception set.
long long SamplesOf(State* state, PyObject* fetcher, const FetchClock* readings, PyObject* asked) {
  if (readings->samples > 0) return readings->samples;
  Ref collates(PyObject_GetAttr(fetcher, names.auto_collation));
  const int does = collates ? PyObject_IsTrue(collates.get()) : -1;
  if (does <= 0) return does < 0 ? -1 : 1;
  const Py_ssize_t size = PyObject_Size(asked);
  if (size >= 0) return size;
  return Dismiss(state) ? 1 : -1;
}

}  // namespace

PyObject* EnterFetch(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto* state = reinterpret_cast<State*>(self);
  if (!state->on) return None();
  Thread* thread = Takes(count, 1) ? Here(state) : nullptr;
  Ref fields(thread ? PyObject_GetAttr(args[0], names.dict) : nullptr);
  if (!fields || !PyDict_Check(fields.get())) return Fail(state, "fetch");
  PyObject* found = PyDict_GetItemWithError(fields.get(), names.readings);
  if (PyErr_Occurred()) return Fail(state, "fetch");
  if (thread->in_fetch || found == nullptr || !PyObject_TypeCheck(found, clock_type)) return None();
  auto* readings = reinterpret_cast<FetchClock*>(found);
  thread->fetch_loader = LoaderOf(state, thread, readings);
  if (thread->fetch_loader < 0 && PyErr_Occurred()) return Fail(state, "fetch");
  readings->collate_ns = readings->slowest_ns = readings->samples = 0;
  thread->in_fetch = 1;
  thread->fetch_cpu = thread->fetch_waited = -1;
  if (WantsSystemTime(readings)) {
    thread->fetch_waited = WithoutCoreNs(thread);
    thread->fetch_cpu = ClockNs(CLOCK_THREAD_CPUTIME_ID);
  }
  thread->fetch_begin = ClockNs();
  return NewRef(found);
}

PyObject* LeaveFetch(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const int64_t end = ClockNs();
  auto* state = reinterpret_cast<State*>(self);
  Thread* thread = Takes(count, 4) && PyObject_TypeCheck(args[1], clock_type) ? Here(state) : nullptr;
  if (thread == nullptr) return Fail(state, "fetch");
  auto* readings = reinterpret_cast<FetchClock*>(args[1]);
  thread->in_fetch = 0;
  if (!state->on || args[3] != Py_True) return None();
  const int64_t taken = std::max<int64_t>(1, end - thread->fetch_begin);
  readings->fetch_ns = taken;
  if (thread->fetch_cpu >= 0) {
    const auto share = [&](int64_t ns) { return static_cast<double>(ns) / static_cast<double>(taken); };
    readings->cpu_share = share(ClockNs(CLOCK_THREAD_CPUTIME_ID) - thread->fetch_cpu);
    readings->waited_share =
        thread->fetch_waited >= 0 ? share(WithoutCoreNs(thread) - thread->fetch_waited) : 0;
  }
  const long long samples = SamplesOf(state, args[0], readings, args[2]);
  if (samples < 0) return Fail(state, "fetch");
  const auto part = [&](double share) { return static_cast<int64_t>(static_cast<double>(taken) * share); };
  const Event event{EventKind::kFetch,
                    thread->fetch_loader,
                    thread->fetch_begin,
                    end,
                    samples | std::min<int64_t>(readings->slowest_ns / 1000, kMaxSlowestUs) << 32,
                    part(readings->cpu_share),
                    readings->collate_ns,
                    part(readings->waited_share)};
  if (!Write(state, thread, event)) return Fail(state, "fetch");
  const double fetched_ns = static_cast<double>(taken - readings->collate_ns);
  const bool wanted = WantsSamples(readings, fetched_ns / static_cast<double>(std::max(samples, 1LL)));
  if (wanted == static_cast<bool>(readings->times_samples)) return None();
  Ref done(PyObject_CallMethod(self, "time_samples", "OO", args[0], wanted ? Py_True : Py_False));
  return done ? None() : Fail(state, "fetch");
}

bool AddFetches(PyObject* module) {
  clock_type = AddType(module, "FetchClock", clock_spec);
  items_type = AddType(module, "TimedItems", items_spec);
  iterator_type = AddType(module, "TimedIteration", iterator_spec);
  collate_type = AddType(module, "TimedCall", collate_spec);
  return clock_type && items_type && iterator_type && collate_type;
}

// judge_fetches(cheap_sample_ns, batches_judged, slow_batch_factor, long_fetch_ns, one_in)
PyObject* JudgeFetches(PyObject*, PyObject* args) {
  if (!PyArg_ParseTuple(args, "LLLLL", &cheap_sample_ns, &batches_judged, &slow_batch_factor, &long_fetch_ns,
                        &one_in))
    return nullptr;
  one_in = std::max(one_in, 1LL);
  return None();
}

}  // namespace fullbore::hook
