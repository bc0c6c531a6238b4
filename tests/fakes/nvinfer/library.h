// State of the fake nvinfer, a test double: the driver beneath it, its log, its allocations,
// injected failures and the report.
#pragma once
#include "objects.h"
#include "slots.h"
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <set>
#include <string>

using Stream = void *;
using Resolve = uint8_t *(*)(uint64_t, uint64_t);

#if MAJOR == 8
constexpr int VERSION[] = {8, 6, 1, 6};
constexpr int NEEDED_DRIVER = 11000;
constexpr const char *NEEDED = "CUDA 11.0";
#elif MAJOR == 10
constexpr int VERSION[] = {10, 16, 1, 11};
constexpr int NEEDED_DRIVER = 12000;
constexpr const char *NEEDED = "CUDA 12.0";
#else
constexpr int VERSION[] = {11, 4, 0, 106};
constexpr int NEEDED_DRIVER = 12000;
constexpr const char *NEEDED = "CUDA 12.0";
#endif
constexpr int VERSION_NUMBER = MAJOR == 8 ? VERSION[0] * 1000 + VERSION[1] * 100 + VERSION[2]
                                          : VERSION[0] * 10000 + VERSION[1] * 100 + VERSION[2];

struct Driver {
    int (*init)(unsigned), (*version)(int *), (*device_count)(int *), (*current)(int *), (*attribute)(int *, int, int);
    int (*alloc)(uint64_t *, size_t), (*release)(uint64_t), (*synchronize)(Stream);
    int (*download)(void *, uint64_t, size_t);
    int (*launch)(Stream, const char *, int (*)(void *, Resolve), void (*)(void *), void *, uint64_t);

    Driver() {
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        auto find = [library](auto &function, const char *name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library ? dlsym(library, name) : nullptr);
        };
        find(init, "cuInit");
        find(version, "cuDriverGetVersion");
        find(device_count, "cuDeviceGetCount");
        find(current, "cuCtxGetDevice");
        find(attribute, "cuDeviceGetAttribute");
        find(alloc, "cuMemAlloc_v2");
        find(release, "cuMemFree_v2");
        find(synchronize, "cuStreamSynchronize");
        find(download, "cuMemcpyDtoH_v2");
        find(launch, "fake_cuda_launch");
    }
};

inline Driver &driver() {
    static Driver driver;
    return driver;
}

// Objects and allocations that live, for the report.
struct Counts {
    std::mutex lock;
    long runtimes = 0, engines = 0, contexts = 0, refitters = 0, allocations = 0, bytes = 0, executions = 0;
    std::set<std::string> plugins;
};

inline Counts &counts() {
    static Counts counts;
    return counts;
}

inline void count(long Counts::*what, long change) {
    std::lock_guard<std::mutex> guard(counts().lock);
    counts().*what += change;
}

// FAKE_NVINFER_FAIL: "function:n,...": the n-th call (from 1; 0: every call) of the function fails.
inline bool fails(const char *function) {
    static std::mutex lock;
    static std::map<std::string, long> calls;
    std::lock_guard<std::mutex> guard(lock);
    long n = ++calls[function], at;
    const char *list = getenv("FAKE_NVINFER_FAIL");
    for (; list && *list; list = strchr(list, ',') ? strchr(list, ',') + 1 : "") {
        size_t length = strlen(function);
        if (!strncmp(list, function, length) && sscanf(list + length, ":%ld", &at) == 1 && (!at || at == n)) return true;
    }
    return false;
}

enum Severity { INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE };

struct Logger {
    void *caller = nullptr;
    void operator()(Severity severity, const std::string &text) const {
        if (caller) call<void>(caller, logger_slot::log, int32_t(severity), text.c_str());
    }
};

// Device memory through the caller's allocator, or from the driver.
struct Memory {
    void *at = nullptr, *allocator = nullptr;
    uint64_t bytes = 0;

    bool allocate(void *from, uint64_t n) {
        allocator = from;
        if (!n) return true;
        if (!allocator) {
            uint64_t address = 0;
            if (driver().alloc(&address, n)) return false;
            at = reinterpret_cast<void *>(address);
        } else if (MAJOR == 8) {
            at = call<void *>(allocator, allocator_slot::allocate, n, uint64_t(256), uint32_t(0));
        } else {
            auto info = call<InterfaceInfo>(allocator, allocator_slot::info);
            if (strcmp(info.kind, "IGpuAllocator") || info.major != 1) die("an allocator says that it is %s %d", info.kind, info.major);
            at = call<void *>(allocator, allocator_slot::allocate_async, n, uint64_t(256), uint32_t(0), Stream(nullptr));
        }
        if (!at) return false;
        if (reinterpret_cast<uint64_t>(at) % 256) die("memory at %p is not aligned to 256 bytes", at);
        bytes = n;
        count(&Counts::allocations, 1);
        count(&Counts::bytes, long(n));
        return true;
    }

    void free() {
        if (!at) return;
        if (!allocator) driver().release(reinterpret_cast<uint64_t>(at));
        else if (MAJOR == 8) call<bool>(allocator, allocator_slot::deallocate, at);
        else call<bool>(allocator, allocator_slot::deallocate_async, at, Stream(nullptr));
        count(&Counts::allocations, -1);
        count(&Counts::bytes, -long(bytes));
        at = nullptr;
    }
};

// FAKE_NVINFER_REPORT: file to which each process that has opened the library adds what lives at
// its end.
__attribute__((destructor)) static void at_exit() {
    const char *path = getenv("FAKE_NVINFER_REPORT");
    FILE *file = path && *path ? fopen(path, "ae") : nullptr;
    if (!file) return;
    const Counts &c = counts();
    fprintf(file, "nvinfer_runtimes %ld\nnvinfer_engines %ld\nnvinfer_contexts %ld\nnvinfer_refitters %ld\nnvinfer_allocations %ld\n"
                  "nvinfer_bytes %ld\nnvinfer_executions_%d %ld\n",
            c.runtimes, c.engines, c.contexts, c.refitters, c.allocations, c.bytes, MAJOR, c.executions);
    fclose(file);
}
