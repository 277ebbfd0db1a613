// Acquiring and releasing the interpreter in threads that may outlive it.
//
// CPython before 3.14 ends every thread that asks for an interpreter that is gone, by pthread_exit: that
// unwinds its stack, through destructors and into handlers that abort the process. A script with a daemon
// thread in the loader would end like that. So such threads of ours stay where they are: the process is about
// to end anyway. And C++ code that runs Python code is counted, so that the exit can wait for it.
#pragma once

#include <Python.h>

#include <atomic>
#include <chrono>

namespace fullbore::loader {

// Like nanobind's gil_scoped_release and gil_scoped_acquire, except when the interpreter has ended.
class LetGoOfInterpreter {
 public:
  LetGoOfInterpreter() : state_(PyEval_SaveThread()) {}
  LetGoOfInterpreter(const LetGoOfInterpreter&) = delete;
  LetGoOfInterpreter& operator=(const LetGoOfInterpreter&) = delete;
  ~LetGoOfInterpreter();

 private:
  PyThreadState* const state_;
};

class TakeInterpreter {
 public:
  TakeInterpreter();
  TakeInterpreter(const TakeInterpreter&) = delete;
  TakeInterpreter& operator=(const TakeInterpreter&) = delete;
  ~TakeInterpreter() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// Calls Python code that may take long. A new reference; null: it raised.
PyObject* CallAndMayOutlive(PyObject* function, PyObject* const* arguments, size_t count);

// While one of these exists, the interpreter should not end. Those of a parent do not count in its fork.
//
// Call MayBegin after constructing one, not before: then either
// AllowNoMore and AwaitNone see it, or it sees them.
class CallUnderWay {
 public:
  CallUnderWay();
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;
  ~CallUnderWay();
  static bool MayBegin() { return !no_more_; }
  // Before the interpreter ends. Where it then does not wait for a call (Ctrl-C), that call's thread stays
  // where it is, even in a destructor that may not be left by force: torch's let go of the interpreter.
  static void AllowNoMore();
  // Without the interpreter: waits until there is none; false if `patience` has passed.
  static bool AwaitNone(std::chrono::milliseconds patience);
  // Once, when the extension is loaded.
  static void ForgetInForks();

 private:
  struct Calls;  // of a process
  static Calls* OfThisProcess();
  static std::atomic<Calls*> calls_of_this_process_;
  static std::atomic<bool> no_more_;
  Calls* const calls_;
};

}  // namespace fullbore::loader
