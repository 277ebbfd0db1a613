// A process that may start no more threads.
#pragma once

#include <pthread.h>

namespace fullbore::loader::testing {

// While it lives, no thread can be started: there is no room for a stack of the default size.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t vast;
    pthread_attr_init(&vast);
    pthread_attr_setstacksize(&vast, size_t{1} << 50);  // more than a process can address
    pthread_setattr_default_np(&vast);
    pthread_attr_destroy(&vast);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

}  // namespace fullbore::loader::testing
