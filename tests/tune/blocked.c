// Preloaded, a program finds a kernel without namespaces and, where $WITHOUT_LANDLOCK is set, without Landlock.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int unshare(int flags) {
  (void)flags;
  errno = EPERM;
  return -1;
}

long syscall(long number, ...) {
  if (number == 444 && getenv("WITHOUT_LANDLOCK")) {
    errno = ENOSYS;
    return -1;
  }
  va_list rest;
  va_start(rest, number);
  long given[6];
  for (int i = 0; i < 6; ++i) given[i] = va_arg(rest, long);
  va_end(rest);
  long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
