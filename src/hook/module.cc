// _native: the hook's hot path for CPython. It reads the clock, keeps the phases of each thread and writes the ring, as
// the Python code of the same names does (python/fullbore/hook/core and torch), which stands in where this cannot be
// loaded. Everything rare stays there: whatever a script or a framework does for the first time is asked of Python.
//
// Nothing here throws, and an error never reaches the script: it switches the hook off.
#include "hook/state.h"

namespace fullbore::hook {

PyObject* JudgeFetches(PyObject*, PyObject* args);

Names names;

// core/native.py expects this one: to be counted up with every change that it has to know.
constexpr long kInterface = 4;

PyTypeObject* AddType(PyObject* module, const char* name, PyType_Spec& spec) {
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr || PyModule_AddObject(module, name, NewRef(type)) != 0) return nullptr;
  return reinterpret_cast<PyTypeObject*>(type);
}

namespace {

bool MakeNames() {
  const std::pair<PyObject**, const char*> all[] = {
      {&names.dict, "__dict__"},     {&names.epoch, "_fullbore_epoch"},
      {&names.shape, "shape"},       {&names.readings, "_fullbore_readings"},
      {&names.training, "training"}, {&names.auto_collation, "auto_collation"},
      {&names.here, "here"},         {&names.open, "open"}};
  for (const auto& [name, text] : all)
    if (!(*name = PyUnicode_InternFromString(text))) return false;
  return true;
}

PyMethodDef functions[] = {
    {"judge_fetches", JudgeFetches, METH_VARARGS, "Sets the thresholds of torch/worker.py."}, {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_native",
                          "The hot path of Fullbore's hook.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace fullbore::hook

PyMODINIT_FUNC PyInit__native() {  // NOLINT(bugprone-reserved-identifier): the name is Python's
  using namespace fullbore::hook;
  Ref module(PyModule_Create(&definition));
  if (!module || !MakeNames() || !AddState(module.get()) || !AddWaits(module.get()) ||
      !AddFetches(module.get()) || PyModule_AddIntConstant(module.get(), "INTERFACE", kInterface) != 0)
    return nullptr;
#ifdef Py_GIL_DISABLED
  PyUnstable_Module_SetGIL(module.get(), Py_MOD_GIL_NOT_USED);
#endif
  return module.release();
}
