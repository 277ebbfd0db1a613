// The state of the hook that the hot path needs: the base of core/runtime.py's Hook and of its threads. One owner, the
// process's only Hook object; a thread's own object is written by that thread.
#pragma once

#include "hook/kept_file.h"
#include "hook/python.h"
#include "hook/ring.h"

namespace fullbore::hook {

struct RingObject {
  PyObject_HEAD alignas(Ring) unsigned char memory[sizeof(Ring)];
  Ring* ring;  // in `memory`
  void* map;
  size_t bytes;
};

// What one thread is doing. Also read by the line sampler.
struct Thread {
  PyObject_HEAD unsigned number;
  int phase;  // EventKind it is inside
  char in_next, in_fetch, in_forward;
  long long loader;      // id of the loader it asked last
  PyObject* fed_by;      // Loader of the last batch it took
  PyObject* open_steps;  // steps under way: (id of the optimizer, begin, outer phase)
  // The forward pass and the fetch in progress: at most one of each, see in_forward and in_fetch.
  int forward_outer, forward_training;
  long long forward_about;  // what is known of one that does not train the module, else 0
  int64_t forward_begin;
  int64_t fetch_begin, fetch_cpu, fetch_waited;
  long long fetch_loader;
  KeptFile schedstat;
};

struct State {
  PyObject_HEAD char on;
  char is_worker;
  char times_cores;  // of each step: kCores
  long long steps;
  PyObject* record;   // a Ring's method, or what drops the records
  PyObject* channel;  // None until it is open
  PyObject* threads;  // {ident: Thread}
  PyObject* is_grad_enabled;
  PyObject* about_pass;  // torch/held.py
  // A step is a usual one if it is this optimizer's on this thread, fed by this loader, and its number is below
  // `usual_until`: then it needs no more than a record. core/steps.py decides that.
  unsigned long long usual_optimizer;  // id(): must not keep the script's object alive
  PyObject* usual_thread;
  PyObject* usual_loader;
  long long usual_until;
  uint64_t generation;   // of `threads`
  long long garbage_ns;  // spent in garbage collections
  int64_t garbage_begin;
  PyObject* known_record;
  Ring* known_ring;  // what `known_record` writes
};

extern PyTypeObject *ring_type, *thread_type, *state_type;

// The calling thread, borrowed. Null with an exception set.
Thread* Here(State* state);

// How long the thread, which is the calling one, was ready to run, and had no core, since it began; -1 where the kernel
// does not count.
int64_t WithoutCoreNs(Thread* thread);

// The ring that `record` writes; null where there is none.
Ring* RingOf(State* state);

struct Event {
  record::EventKind kind;
  long long id = 0;
  int64_t begin = 0, end = 0, a = 0, b = 0, c = 0, d = 0;
};

// False with an exception set.
bool Write(State* state, const Thread* thread, const Event& event);

// The exception that is set switches the hook off; the script goes on. One that is not ours (core/interrupts.py) is
// passed on.
PyObject* Fail(State* state, const char* where);

// Clears the exception that is set, unless it is none of ours: then false, with it set.
bool Dismiss(State* state);

bool AddState(PyObject* module);
bool AddWaits(PyObject* module);
bool AddFetches(PyObject* module);

// The methods of State, one file for each part of a step.
PyObject* EnterForward(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* LeaveForward(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* EnterNext(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* LeaveNext(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* EnterStep(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* LeaveStep(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* EnterFetch(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* LeaveFetch(PyObject* self, PyObject* const* args, Py_ssize_t count);

// The same around a function that they call: runs.cc.
PyObject* Run(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* RunForward(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* RunNext(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* RunFetch(PyObject* self, PyObject* const* args, Py_ssize_t count);

}  // namespace fullbore::hook
