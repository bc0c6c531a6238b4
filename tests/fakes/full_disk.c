/* A fake of a full disk, for LD_PRELOAD: pwrite fails with ENOSPC after FAKE_DISK_FREE bytes. Test double. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long written;

static ssize_t checked_pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    const char *free_bytes = getenv("FAKE_DISK_FREE");
    if (free_bytes && atomic_fetch_add(&written, (long)count) + (long)count > atol(free_bytes)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    return checked_pwrite(fd, bytes, count, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset) {
    return checked_pwrite(fd, bytes, count, offset);
}
