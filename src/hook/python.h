// Python's limited API as of 3.9, so that one binary serves 3.9 to 3.14, and what the files of this folder share of it.
#pragma once

#include <pyconfig.h>
#ifndef Py_GIL_DISABLED  // free-threaded builds have no limited API, and get a binary of their own
#define Py_LIMITED_API 0x03090000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <utility>

// The calling convention is in the limited API since 3.10 only, but the same in 3.9, which changes no more.
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif

namespace fullbore::hook {

// Owns a reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

inline PyObject* NewRef(PyObject* object) {
  Py_INCREF(object);
  return object;
}

inline PyObject* None() { return NewRef(Py_None); }

// METH_FASTCALL, with and without keywords.
using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
using FastKeywords = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

inline PyMethodDef Method(const char* name, Fast function, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), METH_FASTCALL, doc};
}

inline PyMethodDef Method(const char* name, FastKeywords function, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
          METH_FASTCALL | METH_KEYWORDS, doc};
}

inline bool Takes(Py_ssize_t given, Py_ssize_t wanted) {
  if (given == wanted) return true;
  PyErr_Format(PyExc_TypeError, "takes %zd arguments, not %zd", wanted, given);
  return false;
}

// For an object whose type came from a spec: instances own a reference to it.
inline void Free(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

template <typename T>
T* New(PyTypeObject* type) {
  return reinterpret_cast<T*>(PyType_GenericAlloc(type, 0));
}

// Makes a type and puts it into the module. Null with an exception set.
PyTypeObject* AddType(PyObject* module, const char* name, PyType_Spec& spec);

// Names looked up on the hot path, made once.
struct Names {
  PyObject *dict, *epoch, *readings, *shape, *training, *auto_collation, *here, *open;
};
extern Names names;

}  // namespace fullbore::hook
