/* Preloaded into a server: files and directories are removed slowly, as on a busy disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

int unlinkat(int dir, const char *path, int flags) {
    int (*next)(int, const char *, int) = (int (*)(int, const char *, int))dlsym(RTLD_NEXT, "unlinkat");
    usleep(100000);
    return next(dir, path, flags);
}

int unlink(const char *path) {
    int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
    usleep(100000);
    return next(path);
}

int rmdir(const char *path) {
    int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "rmdir");
    usleep(100000);
    return next(path);
}
