/* Writes that stop half way. Preloaded; `torn_arm` says which write of this process, below which
 * path, and what becomes of it: 0 none (they are counted), 1 half is written and told as such,
 * 2 half is written and the disk is full, 3 half is written and the disk fails, 4 half is written and the
 * process is killed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char prefix[PATH_MAX];
static long wanted, seen;
static int what;

void torn_arm(const char *below, long number, int kind) {
    strncpy(prefix, below, sizeof prefix - 1);
    wanted = number;
    what = kind;
    seen = 0;
}

long torn_seen(void) { return seen; }

static int is_below(int file) {
    char link[64], path[PATH_MAX];
    ssize_t length;
    int before = errno;
    if (!prefix[0])
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length < 0)
        return 0;
    path[length] = 0;
    return !strncmp(path, prefix, strlen(prefix));
}

/* How many bytes of a write go through: all, or half of the one that is wanted. */
static int tears(int file, size_t count) {
    return count > 1 && is_below(file) && __sync_add_and_fetch(&seen, 1) == wanted && what;
}

static ssize_t torn(ssize_t written) {
    switch (what) {
    case 2: errno = ENOSPC; return -1;
    case 3: errno = EIO; return -1;
    case 4: raise(SIGKILL);
    }
    return written;
}

ssize_t write(int file, const void *data, size_t count) {
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    return tears(file, count) ? torn(real(file, data, count / 2)) : real(file, data, count);
}

ssize_t pwrite(int file, const void *data, size_t count, off_t at) {
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
    return tears(file, count) ? torn(real(file, data, count / 2, at)) : real(file, data, count, at);
}

ssize_t pwrite64(int file, const void *data, size_t count, off64_t at) {
    ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    return tears(file, count) ? torn(real(file, data, count / 2, at)) : real(file, data, count, at);
}
