// fullbore.data._core: binds the loader, and releases the interpreter wherever it waits.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "base/secrets.h"
#include "loader/core/options/options_json.h"
#include "loader/python/backend.h"
#include "loader/python/convert.h"
#include "loader/python/interpreter.h"

namespace fullbore::loader {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using std::chrono::milliseconds;

// How long Ctrl-C may go unnoticed.
constexpr milliseconds kSignalCheck{50};

// Call it after constructing a CallUnderWay, if the exit is to wait for that.
void RaiseAtTheEnd() {
  if (CallUnderWay::MayBegin()) return;
  Raise({ErrorCode::kUnavailable, "Python is shutting down, and all loaders with it", ""});
}

// Owned by a Python object. Every call holds its own reference to the backend, so that `close` in one thread
// never destroys it while another uses it.
class PyLoader {
 public:
  PyLoader(std::shared_ptr<Backend> backend, std::shared_ptr<PythonStage> stage)
      : backend_(std::move(backend)), stage_(std::move(stage)) {}
  PyLoader(const PyLoader&) = delete;
  PyLoader& operator=(const PyLoader&) = delete;

  ~PyLoader() {
    if (getpid() != pid_) {
      // Never destroyed: its threads are the parent's.
      alignas(std::shared_ptr<Backend>) std::byte kept[sizeof(std::shared_ptr<Backend>)];
      new (kept) std::shared_ptr<Backend>(std::move(backend_));
      return;
    }
    Close();
  }

  template <typename F>
  auto WithoutInterpreter(F use) {
    std::shared_ptr<Backend> backend = Taken();
    const LetGoOfInterpreter others_may_run;
    const std::lock_guard lock(iterating_);  // two threads of a script may share one iterator
    auto result = use(*backend);
    backend.reset();
    return result;
  }

  // None at the end of the epoch.
  nb::object Next() {
    const CallUnderWay under_way;
    RaiseAtTheEnd();
    for (;;) {
      auto batch = WithoutInterpreter([](Backend& backend) { return backend.Next(kSignalCheck); });
      if (batch) return *batch ? nb::cast(std::move(**batch)) : nb::none();
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (batch.error().code != ErrorCode::kTimeout) Raise(batch.error());
    }
  }

  void SetEpoch(uint64_t epoch) {
    const CallUnderWay under_way;
    WithoutInterpreter([epoch](Backend& backend) { return backend.SetEpoch(epoch), 0; });
  }
  std::string State() {
    const CallUnderWay under_way;
    return WithoutInterpreter([](Backend& backend) { return backend.State().ToJson(); });
  }
  void Restore(const std::string& text) {
    const CallUnderWay under_way;
    auto state = LoaderState::FromJson(text);
    if (!state) Raise(state.error());
    auto restored = WithoutInterpreter([&](Backend& backend) { return backend.Restore(*state); });
    if (!restored) Raise(restored.error());
  }
  void Stop() { Taken()->Stop(); }

  void Close() {
    if (getpid() != pid_) return;
    std::shared_ptr<Backend> last;
    {
      const std::lock_guard lock(pointer_);
      last = std::move(backend_);
    }
    if (!last) return;
    last->Stop();
    if (stage_) stage_->Close();
    const LetGoOfInterpreter others_may_run;  // its threads may need the interpreter to end
    last.reset();
  }

  // For the garbage collector.
  int Visit(visitproc visit, void* arg) const { return stage_ ? stage_->Visit(visit, arg) : 0; }
  void Clear() {
    if (stage_ && getpid() == pid_) stage_->Close();
  }

  // For calls that do not wait.
  std::shared_ptr<Backend> Taken() const {
    if (getpid() != pid_) {
      Raise({ErrorCode::kUnsupported,
             "this loader belongs to process " + std::to_string(pid_) + ", and this one (" +
                 std::to_string(getpid()) + ") is a fork of it",
             "open a loader in the child, or start the child with the 'spawn' method and pass the "
             "loader to it"});
    }
    const std::lock_guard lock(pointer_);
    if (!backend_) Raise({ErrorCode::kUnavailable, "the loader is closed", ""});
    return backend_;
  }

 private:
  const pid_t pid_ = getpid();
  mutable std::mutex pointer_;
  std::shared_ptr<Backend> backend_;  // protected by pointer_; empty once closed
  std::mutex iterating_;
  const std::shared_ptr<PythonStage> stage_;  // null without one
};

LoaderOptions Options(const std::string& json) {
  auto options = OptionsFromJson(json);
  if (!options) Raise(options.error());
  return *options;
}

// In a separate thread, so that Ctrl-C ends the wait for storage that does not answer. A thread that is left
// behind ends with its call, and closes what it opened.
template <typename Open>
auto AwaitOpened(Open open) {
  struct Opening {
    std::mutex mutex;
    std::condition_variable change;
    std::optional<decltype(open())> opened;  // protected by mutex, as is what follows
    std::exception_ptr thrown;               // for example when memory is short
  };
  const auto opening = std::make_shared<Opening>();
  const auto work = [opening, open = std::move(open)] {
    try {
      auto opened = open();
      const std::lock_guard lock(opening->mutex);
      opening->opened.emplace(std::move(opened));
    } catch (...) {
      const std::lock_guard lock(opening->mutex);
      opening->thrown = std::current_exception();
    }
    opening->change.notify_all();
  };
  for (bool done = false, begun = false; !done;) {
    {
      const LetGoOfInterpreter others_may_run;
      try {
        if (!begun) std::thread(work).detach();
      } catch (const std::system_error&) {  // no thread can be started
        work();
      }
      begun = true;
      std::unique_lock lock(opening->mutex);
      done = opening->change.wait_for(lock, kSignalCheck, [&] { return opening->opened || opening->thrown; });
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  if (opening->thrown) std::rethrow_exception(opening->thrown);
  return std::move(*opening->opened);
}

template <typename L>
PyLoader* Opened(Result<L> loader, std::shared_ptr<PythonStage> stage) {
  if (!loader) Raise(loader.error());
  return new PyLoader(std::make_shared<BackendOf<L>>(std::move(*loader)), std::move(stage));
}

// Batches go to the memory of the CUDA device `cuda_device`; -1: host memory.
PyLoader* Open(const std::string& options_json, nb::object function, int cuda_device) {
  RaiseAtTheEnd();
  const LoaderOptions options = Options(options_json);
  const auto stage = function.is_none() ? nullptr : PythonStage::Of(std::move(function));
  const RowFunction call = stage ? PythonStage::ToRowFunction(stage) : RowFunction();
  try {
    if (cuda_device >= 0) {
      return Opened(AwaitOpened([=] { return cuda::DeviceLoader::Open(options, cuda_device, call); }), stage);
    }
    return Opened(AwaitOpened([=] { return Loader::Open(options, call); }), stage);
  } catch (...) {
    if (stage) stage->Close();
    throw;
  }
}

// Before the interpreter ends, with all loaders closed. False: `patience_s` has passed.
bool AwaitCalls(double patience_s) {
  const auto patience = std::chrono::duration<double>(patience_s);
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    {
      const LetGoOfInterpreter others_may_run;
      if (CallUnderWay::AwaitNone(kSignalCheck)) return true;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (std::chrono::steady_clock::now() - begin > patience) return false;
  }
}

nb::list ClassNames(PyLoader& loader) {
  nb::list names;
  for (const std::string& name : loader.Taken()->class_names()) names.append(ToFileName(name));
  return names;
}

nb::list Messages(PyLoader& loader) {
  nb::list said;
  for (const Message& message : loader.Taken()->TakeMessages())
    said.append(nb::make_tuple(static_cast<int>(message.severity), ToText(message.text)));
  return said;
}

nb::list BadSamples(PyLoader& loader) {
  nb::list said;
  for (const BadSample& bad : loader.Taken()->bad_samples())
    said.append(nb::make_tuple(bad.epoch, bad.id, ToText(bad.name), ToString(bad.error)));
  return said;
}

int Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<PyLoader>(self)->Visit(visit, arg) : 0;
}

int Clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<PyLoader>(self)->Clear();
  return 0;
}

PyType_Slot collectable[] = {{Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(Clear)},
                             {0, nullptr}};

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "The engine of fullbore.data. Use fullbore.data: the names in this module may change.";
  CallUnderWay::ForgetInForks();
#ifndef FULLBORE_SANITIZED
  // A script that ends with a daemon thread in the loader leaves
  // objects behind, about which users can do nothing.
  nb::set_leak_warnings(false);
#endif

  nb::class_<Batch>(module, "Batch")
      .def("fields", &ToFields)
      .def_ro("rows", &Batch::rows)
      .def_ro("epoch", &Batch::epoch)
      .def_ro("index", &Batch::index)
      .def_ro("ids", &Batch::sample_ids)
      .def_prop_ro("valid", [](const Batch& batch) {
        return std::vector<bool>(batch.valid.begin(), batch.valid.end());
      });

  nb::class_<PyLoader>(module, "Loader", nb::type_slots(collectable))
      .def("next", &PyLoader::Next)
      .def("set_epoch", &PyLoader::SetEpoch, "epoch"_a)
      .def("state", &PyLoader::State)
      .def("restore", &PyLoader::Restore, "state"_a)
      .def("stop", &PyLoader::Stop)
      .def(
          "set_stream", [](PyLoader& loader, uint64_t stream) { loader.Taken()->SetStream(stream); },
          "stream"_a)
      .def("close", &PyLoader::Close)
      .def_prop_ro("samples", [](PyLoader& loader) { return loader.Taken()->samples(); })
      .def_prop_ro("batches_per_epoch", [](PyLoader& loader) { return loader.Taken()->batches_per_epoch(); })
      .def_prop_ro("class_names", ClassNames)
      .def("stats", [](PyLoader& loader) { return ToDict(loader.Taken()->Stats()); })
      .def("take_messages", &Messages)
      .def("bad_samples", &BadSamples);

  module.def("open", &Open, "options"_a, "function"_a.none(), "cuda_device"_a, nb::rv_policy::take_ownership);
  module.def(
      "mask_urls", [](const std::string& text) { return MaskUrls(text); }, "text"_a);
  module.def("allow_no_more_calls", &CallUnderWay::AllowNoMore);
  module.def("await_calls", &AwaitCalls, "patience_s"_a);
}

}  // namespace fullbore::loader
