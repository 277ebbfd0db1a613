#include "loader/core/source/hdf5_driver.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>

namespace fullbore::loader {

namespace {

struct Target {
  Store* store;
  const StoredFile* file;
};

struct DriverFile {
  H5FD_t common;  // first: libhdf5 knows only this
  Target target;
  haddr_t end_of_allocation;
};

DriverFile* Of(const H5FD_t* file) { return reinterpret_cast<DriverFile*>(const_cast<H5FD_t*>(file)); }

H5FD_t* OpenFile(const char*, unsigned flags, hid_t access, haddr_t) {
  if (flags & H5F_ACC_RDWR) return nullptr;
  const auto* target = static_cast<const Target*>(H5Pget_driver_info(access));
  if (!target) return nullptr;
  auto* file = static_cast<DriverFile*>(std::calloc(1, sizeof(DriverFile)));
  if (file) file->target = *target;
  return reinterpret_cast<H5FD_t*>(file);
}

herr_t CloseFile(H5FD_t* file) {
  std::free(file);
  return 0;
}

// No two files compare as the same: libhdf5 would share
// state that the owner of the first may end before the other.
int Compare(const H5FD_t* a, const H5FD_t* b) { return a < b ? -1 : a > b ? 1 : 0; }

herr_t Query(const H5FD_t*, unsigned long* flags) {
  if (flags) *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE;
  return 0;
}

haddr_t EndOfAllocation(const H5FD_t* file, H5FD_mem_t) { return Of(file)->end_of_allocation; }

herr_t SetEndOfAllocation(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  Of(file)->end_of_allocation = end;
  return 0;
}

haddr_t EndOfFile(const H5FD_t* file, H5FD_mem_t) { return Of(file)->target.file->bytes; }

// Fails beyond the end of the file, where libhdf5's own driver would make up zeros.
herr_t ReadBytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  const Target& target = Of(file)->target;
  if (address > target.file->bytes || size > target.file->bytes - address) return -1;
  return target.store->Read(*target.file, address, {static_cast<uint8_t*>(buffer), size}) ? 0 : -1;
}

herr_t RefuseWrite(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) { return -1; }

// A fork waits for the call in progress, because a child that lacks the thread inside libhdf5 could never
// enter it. But that call may be reading from stalled storage; then the child has to do without libhdf5.
constexpr std::chrono::seconds kForkPatience{1};
std::timed_mutex mutex;
bool lost = false, held_in_fork = false;  // of the thread that forks, and of its child

// By wall clock: the thread sanitizer of gcc 12 does not see the lock that waits by the monotonic clock.
void BeforeFork() { held_in_fork = mutex.try_lock_until(std::chrono::system_clock::now() + kForkPatience); }
void AfterForkInParent() {
  if (held_in_fork) mutex.unlock();
}
void AfterForkInChild() {
  if (held_in_fork) return mutex.unlock();
  lost = true;
  new (&mutex) std::timed_mutex;  // no thread is left to unlock it
}

hid_t Driver() {
  static const hid_t driver = [] {
    H5dont_atexit();  // files may be read until the process ends
    H5open();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5FD_class_t description = {};
#ifdef H5FD_CLASS_VERSION
    description.version = H5FD_CLASS_VERSION;
    constexpr int kUnregistered = 600;  // beyond the values that The HDF Group assigns
    description.value = static_cast<H5FD_class_value_t>(kUnregistered);
#endif
    description.name = "fullbore_store";
    description.maxaddr = HADDR_MAX;
    description.fc_degree = H5F_CLOSE_STRONG;
    description.fapl_size = sizeof(Target);
    description.open = OpenFile;
    description.close = CloseFile;
    description.cmp = Compare;
    description.query = Query;
    description.get_eoa = EndOfAllocation;
    description.set_eoa = SetEndOfAllocation;
    description.get_eof = EndOfFile;
    description.read = ReadBytes;
    description.write = RefuseWrite;
    const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(map), std::end(map), description.fl_map);
    return H5FDregister(&description);
  }();
  return driver;
}

}  // namespace

std::timed_mutex& Hdf5Mutex() {
  static const int forks = pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
  (void)forks;
  return mutex;
}

bool Hdf5IsLost() { return lost; }

hid_t OpenHdf5Through(Store& store, const StoredFile& file) {
  const hid_t driver = Driver();
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  const Target target{&store, &file};
  if (H5Pset_driver(access.get(), driver, &target) < 0) return -1;
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  return H5Fopen(file.path.c_str(), H5F_ACC_RDONLY, access.get());
}

}  // namespace fullbore::loader
