// A virtual file driver for libhdf5 that reads through a Store.
#pragma once

#include <hdf5.h>

#include <mutex>

#include "loader/core/store.h"

namespace fullbore::loader {

std::timed_mutex& Hdf5Mutex();  // held around every call into libhdf5
bool Hdf5IsLost();  // forked in the middle of a call that did not end: this process must not call libhdf5

// H5Fopen through the driver, for reading. `store` and `file` must outlive it. Negative on failure.
hid_t OpenHdf5Through(Store& store, const StoredFile& file);

// An id of libhdf5 that is closed with this object; the caller then holds the mutex.
class Hdf5Id {
 public:
  Hdf5Id() = default;
  Hdf5Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Id() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

}  // namespace fullbore::loader
