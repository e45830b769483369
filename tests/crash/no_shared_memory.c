/* Stands before the C library: a file system without shared memory, or without locks.
   ACL_TEST_LACKS is "mmap", "fcntl" or "flock", and ACL_TEST_WHERE a directory; nothing else lacks
   anything. Built and preloaded by the test beside it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static int lacks(const char *what, int fd) {
  const char *lacking = getenv("ACL_TEST_LACKS"), *where = getenv("ACL_TEST_WHERE");
  char link[64], path[4096];
  ssize_t length;
  if (lacking == NULL || where == NULL || fd < 0 || strcmp(lacking, what) != 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strncmp(path, where, strlen(where)) == 0;
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  void *(*real)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  if (lacks("mmap", fd)) { errno = ENODEV; return MAP_FAILED; }
  return real(at, size, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset) {
  void *(*real)(void *, size_t, int, int, int, off64_t) = dlsym(RTLD_NEXT, "mmap64");
  if (lacks("mmap", fd)) { errno = ENODEV; return MAP_FAILED; }
  return real(at, size, protection, flags, fd, offset);
}

static int locks(int command) { return command == F_SETLK || command == F_SETLKW || command == F_GETLK; }

int fcntl(int fd, int command, ...) {
  int (*real)(int, int, ...) = dlsym(RTLD_NEXT, "fcntl");
  va_list rest;
  void *argument;
  va_start(rest, command);
  argument = va_arg(rest, void *);
  va_end(rest);
  if (locks(command) && lacks("fcntl", fd)) { errno = ENOLCK; return -1; }
  return real(fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  int (*real)(int, int, ...) = dlsym(RTLD_NEXT, "fcntl64");
  va_list rest;
  void *argument;
  va_start(rest, command);
  argument = va_arg(rest, void *);
  va_end(rest);
  if (locks(command) && lacks("fcntl", fd)) { errno = ENOLCK; return -1; }
  return real(fd, command, argument);
}

int flock(int fd, int operation) {
  int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");
  if (lacks("flock", fd)) { errno = ENOLCK; return -1; }
  return real(fd, operation);
}
