#include "loader/python/interpreter.h"

#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>

namespace fullbore::loader {

namespace {

// Called from a handler of the unwinding that pthread_exit began, and never left: that ends the unwinding.
[[noreturn]] void StayUntilTheProcessEnds() {
  for (;;) pause();
}

thread_local int calls_of_this_thread = 0;
std::terminate_handler handler_before = nullptr;

// What the end of the interpreter does to a thread within a destructor: that has no handler.
[[noreturn]] void StayOrTerminate() {
  if (calls_of_this_thread > 0 && !CallUnderWay::MayBegin()) StayUntilTheProcessEnds();
  handler_before();
  std::abort();
}

}  // namespace

LetGoOfInterpreter::~LetGoOfInterpreter() {
  try {
    PyEval_RestoreThread(state_);
  } catch (const abi::__forced_unwind&) {
    StayUntilTheProcessEnds();
  }
}

TakeInterpreter::TakeInterpreter() {
  try {
    state_ = PyGILState_Ensure();
  } catch (const abi::__forced_unwind&) {
    StayUntilTheProcessEnds();
  }
}

PyObject* CallAndMayOutlive(PyObject* function, PyObject* const* arguments, size_t count) {
  try {
    return PyObject_Vectorcall(function, arguments, count, nullptr);
  } catch (const abi::__forced_unwind&) {
    StayUntilTheProcessEnds();
  }
}

struct CallUnderWay::Calls {
  std::mutex mutex;
  std::condition_variable change;
  int under_way = 0;  // protected by mutex
};

// Never destroyed, because a thread that was left behind may look at it while the process ends. Null before
// the first call and in a forked child, which gets its own: threads that the child lacks may hold the lock or
// be in a call.
std::atomic<CallUnderWay::Calls*> CallUnderWay::calls_of_this_process_ = nullptr;
std::atomic<bool> CallUnderWay::no_more_ = false;

CallUnderWay::Calls* CallUnderWay::OfThisProcess() {
  Calls* calls = calls_of_this_process_;
  if (calls) return calls;
  auto fresh = std::make_unique<Calls>();
  return calls_of_this_process_.compare_exchange_strong(calls, fresh.get()) ? fresh.release() : calls;
}

CallUnderWay::CallUnderWay() : calls_(OfThisProcess()) {
  ++calls_of_this_thread;
  const std::lock_guard lock(calls_->mutex);
  ++calls_->under_way;
}

CallUnderWay::~CallUnderWay() {
  --calls_of_this_thread;
  if (calls_ != calls_of_this_process_) return;  // the call forked, and this is the child
  const std::lock_guard lock(calls_->mutex);
  --calls_->under_way;
  calls_->change.notify_all();
}

bool CallUnderWay::AwaitNone(std::chrono::milliseconds patience) {
  Calls& calls = *OfThisProcess();
  std::unique_lock lock(calls.mutex);
  return calls.change.wait_for(lock, patience, [&] { return calls.under_way == 0; });
}

void CallUnderWay::AllowNoMore() {
  no_more_ = true;
  if (!handler_before) handler_before = std::set_terminate(StayOrTerminate);
}

void CallUnderWay::ForgetInForks() {
  pthread_atfork(nullptr, nullptr, [] {
    calls_of_this_process_ = nullptr;
    no_more_ = false;
  });
}

}  // namespace fullbore::loader
