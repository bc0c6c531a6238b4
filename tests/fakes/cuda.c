/* Fake CUDA driver library for tests: devices, contexts, streams, events, memory, IPC and three kernels on the CPU.
 *
 * It is a test double. What passes on it is not a result on a GPU.
 *
 * Work that is queued on a stream is done by a thread of that stream, some time after it was queued, so that a missing
 * wait shows as wrong data. Device addresses are not mapped: the host crashes when it reads one. Work that uses freed
 * memory, or memory whose allocation another stream has not reached, ends its context with "illegal address".
 *
 * Settings, by environment variable FAKE_CUDA_<NAME>, or by fake_cuda_set(NAME, value) before cuInit:
 *   DEVICES    "name/capability/MiB,..."; default "Fake GPU/7.5/1024"; empty: none
 *   VISIBLE    as CUDA_VISIBLE_DEVICES, which it replaces
 *   VERSION    of cuDriverGetVersion; default 12080
 *   TAKEN      MiB of each device that other programs have taken, for cuMemGetInfo; default 0
 *   POOLS      0: devices without memory pools
 *   DELAY_US   of each copy and kernel; default 100
 *   HOLD       file: no kernel ends while it exists
 *   FAIL       "function:n:code,...": the n-th call (from 1; 0: every call) of the function returns the code
 *   LOG        file for a line per call and per piece of work: nanoseconds, call|begin|end, name, stream, bytes
 *   REPORT     file for the report at the end of the process: what leaked, and misuse
 *
 * For other fake libraries (cuda_graphs.h): fake_cuda_launch(...) queues a function of theirs as a kernel.
 * For tests in the process: fake_cuda_report(text, size) writes the report, fake_cuda_count(function) counts calls.
 *
 * Kernels by name, whatever the text of the module says besides:
 *   add(float *a, float *b, float *sum, unsigned n)   spin(unsigned long long ns)   fault()
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700,
    ALREADY_REGISTERED = 712, LAUNCH_FAILED = 719, NOT_SUPPORTED = 801
};
enum { MAX_DEVICES = 16, MAX_SETTINGS = 32, MAX_FUNCTIONS = 128 };
#define DEVICE_BASE 0x200000000000ull
#define DEVICE_SPACE 0x10000000000ull

typedef uint32_t result;
typedef uint64_t address;
typedef struct stream stream;
typedef struct event event;

typedef struct {
    char name[64];
    int major, minor, physical;
    uint64_t total, used, peak;
    address next;
    result sticky;
    int context; /* its address is the context handle */
    int retained;
    stream *legacy;
} device;

typedef struct allocation {
    address at;
    uint64_t bytes;
    uint8_t *backing;
    int device, file, ipc; /* file: descriptor of the backing, or -1; ipc: times opened, 0 for own memory */
    int ready;             /* 0 until the stream of its allocation has reached it */
    int freed;             /* cuMemFreeAsync was called, the stream has not reached it */
    struct allocation *next;
} allocation;

typedef struct host_block {
    void *at;
    uint64_t bytes;
    int registered; /* memory of the caller */
    struct host_block *next;
} host_block;

/* What one cuEventRecord captured. Waits keep theirs when the event is recorded another time. */
typedef struct {
    uint64_t uses;
    int reached;
} recording;

struct event {
    int alive, device, timing;
    recording *last; /* null before the first */
};

typedef enum { COPY, SET, RECORD, WAIT, READY, RELEASE, HOST, KERNEL, TASK } kind;
typedef struct task task;
typedef struct graph graph;

typedef struct {
    kind kind;
    address to, from;
    uint64_t bytes;
    uint8_t value;
    recording *recording;
    void (*function)(void *);
    void *data;
    int kernel;
    uint64_t arguments[4];
    task *task;
} work;

struct stream {
    int alive, device, priority, id, closing;
    work *queue;
    uint64_t first, count, capacity;
    int busy;
    graph *capture; /* where queued work goes while the stream is captured */
    pthread_t thread;
};

typedef struct { int kernel; } function;
typedef struct { address device; uint64_t threshold, reserved; int alive; int device_id; } pool;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static device devices[MAX_DEVICES];
static int device_count, initialized;
static allocation *allocations;
static host_block *host_blocks;
static char settings[MAX_SETTINGS][2][1024];
static int setting_count;
static struct { const char *name; uint64_t calls; } functions[MAX_FUNCTIONS];
static int function_count;
static uint64_t double_frees, bad_handles, copies_queued, streams_alive, events_alive, pools_alive, modules_alive, stream_ids;
static uint64_t graphs_alive, pinned_uploads, pinned_upload_bytes;
static FILE *log_file;
static _Thread_local int context_stack[32];
static _Thread_local int context_depth;

static const char *setting(const char *name) {
    for (int i = 0; i < setting_count; i++)
        if (!strcmp(settings[i][0], name)) return settings[i][1];
    char variable[64];
    snprintf(variable, sizeof variable, "FAKE_CUDA_%s", name);
    return getenv(variable);
}

void fake_cuda_set(const char *name, const char *value) {
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < setting_count && strcmp(settings[i][0], name)) i++;
    if (i == setting_count) setting_count++;
    snprintf(settings[i][0], sizeof settings[i][0], "%s", name);
    snprintf(settings[i][1], sizeof settings[i][1], "%s", value);
    pthread_mutex_unlock(&lock);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void log_line(const char *what, const char *name, const stream *s, uint64_t bytes) {
    static int opened;
    if (!opened) {
        opened = 1;
        const char *path = setting("LOG");
        if (path && *path) log_file = fopen(path, "ae");
    }
    if (log_file) {
        fprintf(log_file, "%llu %s %s %d %llu\n", (unsigned long long)now_ns(), what, name, s ? s->id : -1,
                (unsigned long long)bytes);
        fflush(log_file);
    }
}

/* Counts a call; returns the failure that the settings want. Holds the lock. */
static result called(const char *name, const stream *s, uint64_t bytes) {
    int i = 0;
    while (i < function_count && strcmp(functions[i].name, name)) i++;
    if (i == function_count && i < MAX_FUNCTIONS) functions[function_count++].name = name;
    uint64_t n = ++functions[i].calls;
    log_line("call", name, s, bytes);
    const char *fail = setting("FAIL");
    for (; fail && *fail; fail = strchr(fail, ',') ? strchr(fail, ',') + 1 : "") {
        size_t length = strlen(name);
        unsigned long long at, code;
        if (!strncmp(fail, name, length) && sscanf(fail + length, ":%llu:%llu", &at, &code) == 2 && (!at || at == n))
            return (result)code;
    }
    return OK;
}

uint64_t fake_cuda_count(const char *name) {
    uint64_t calls = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < function_count; i++)
        if (!strcmp(functions[i].name, name)) calls = functions[i].calls;
    pthread_mutex_unlock(&lock);
    return calls;
}

#define BEGIN(s, bytes) \
    pthread_mutex_lock(&lock); \
    result code = called(__func__, s, bytes); \
    if (code == OK && !initialized) code = NOT_INITIALIZED; \
    if (code) goto out
#define END \
out: \
    pthread_mutex_unlock(&lock); \
    return code
#define FAIL(value) do { code = (value); goto out; } while (0)
/* The device of the current context. */
#define CURRENT(d) \
    if (!context_depth || context_stack[context_depth - 1] < 0) FAIL(INVALID_CONTEXT); \
    device *d = &devices[context_stack[context_depth - 1]]; \
    if (d->sticky) FAIL(d->sticky)

/* Memory. */

static allocation *find(address at) {
    for (allocation *a = allocations; a; a = a->next)
        if (at >= a->at && at < a->at + a->bytes) return a;
    return NULL;
}

static int is_device_address(address at) { return at >= DEVICE_BASE && at < DEVICE_BASE + MAX_DEVICES * DEVICE_SPACE; }

/* What the address stands for on the host; null: illegal. */
static uint8_t *resolve(address at, uint64_t bytes) {
    if (!is_device_address(at)) return (uint8_t *)(uintptr_t)at;
    allocation *a = find(at);
    if (!a || !a->ready || at + bytes > a->at + a->bytes) return NULL;
    return a->backing + (at - a->at);
}

static allocation *allocate(int d, uint64_t bytes, int ready) {
    device *on = &devices[d];
    if (!bytes || on->used + bytes > on->total) return NULL;
    allocation *a = calloc(1, sizeof *a);
    a->file = memfd_create("fake-cuda", MFD_CLOEXEC);
    if (!a || a->file < 0 || ftruncate(a->file, (off_t)bytes)) abort();
    a->backing = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->file, 0);
    if (a->backing == MAP_FAILED) abort();
    memset(a->backing, 0xcd, bytes > 65536 ? 65536 : bytes);
    a->at = DEVICE_BASE + (address)d * DEVICE_SPACE + on->next;
    on->next += ((bytes + 511) & ~511ull) + 4096;
    a->bytes = bytes;
    a->device = d;
    a->ready = ready;
    a->next = allocations;
    allocations = a;
    on->used += bytes;
    if (on->used > on->peak) on->peak = on->used;
    return a;
}

static void release(allocation *a) {
    for (allocation **p = &allocations; *p; p = &(*p)->next)
        if (*p == a) { *p = a->next; break; }
    if (!a->ipc) devices[a->device].used -= a->bytes;
    munmap(a->backing, a->bytes);
    close(a->file);
    free(a);
}

#include "cuda_graphs.h"

/* Streams. */

static recording *use_recording(recording *r) {
    if (r) r->uses++;
    return r;
}

static void end_use(recording *r) {
    if (r && --r->uses == 0) free(r);
}

static void add_kernel(float *a, float *b, float *sum, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) sum[i] = a[i] + b[i];
}

static void sleep_ns(uint64_t ns) {
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    nanosleep(&t, NULL);
}

static const char *const WORK_NAMES[] = {"copy", "set", "record", "wait", "alloc", "free", "host", "kernel", "task"};
static const char *const KERNELS[] = {"add", "spin", "fault"};

/* Does one piece of work. Holds the lock, except while it sleeps and while a host function runs. */
static void perform(stream *s, work *w) {
    device *d = &devices[s->device];
    const char *name = w->kind == KERNEL ? KERNELS[w->kernel] : w->kind == TASK ? w->task->name : WORK_NAMES[w->kind];
    const char *delay = setting("DELAY_US");
    uint64_t ns = (delay ? strtoull(delay, NULL, 10) : 100) * 1000;
    if (w->kind == KERNEL && w->kernel == 1) ns = w->arguments[0];
    if (w->kind == TASK) ns += w->task->ns;
    log_line("begin", name, s, w->bytes);
    if (w->kind == COPY || w->kind == SET || w->kind == KERNEL || w->kind == TASK) {
        pthread_mutex_unlock(&lock);
        sleep_ns(ns);
        const char *hold = w->kind == KERNEL ? setting("HOLD") : NULL;
        while (hold && !access(hold, F_OK)) sleep_ns(1000000);
        pthread_mutex_lock(&lock);
    }
    switch (w->kind) {
    case COPY: {
        uint8_t *to = resolve(w->to, w->bytes), *from = resolve(w->from, w->bytes);
        if (to && from) memmove(to, from, w->bytes);
        else d->sticky = ILLEGAL_ADDRESS;
        break;
    }
    case SET: {
        uint8_t *to = resolve(w->to, w->bytes);
        if (to) memset(to, w->value, w->bytes);
        else d->sticky = ILLEGAL_ADDRESS;
        break;
    }
    case RECORD:
        w->recording->reached = 1;
        break;
    case WAIT:
        while (w->recording && !w->recording->reached && !d->sticky) pthread_cond_wait(&changed, &lock);
        break;
    case READY: {
        allocation *a = find(w->to);
        if (a) a->ready = 1;
        break;
    }
    case RELEASE: {
        allocation *a = find(w->to);
        if (a) release(a);
        else double_frees++;
        break;
    }
    case HOST:
        pthread_mutex_unlock(&lock);
        w->function(w->data);
        pthread_mutex_lock(&lock);
        break;
    case KERNEL:
        if (w->kernel == 0) {
            uint64_t bytes = (uint32_t)w->arguments[3] * sizeof(float);
            float *a = (float *)resolve(w->arguments[0], bytes), *b = (float *)resolve(w->arguments[1], bytes);
            float *sum = (float *)resolve(w->arguments[2], bytes);
            if (a && b && sum) add_kernel(a, b, sum, (uint32_t)w->arguments[3]);
            else d->sticky = ILLEGAL_ADDRESS;
        } else if (w->kernel == 2) {
            d->sticky = ILLEGAL_ADDRESS;
        }
        break;
    case TASK:
        if (w->task->run(w->task->data, resolve)) d->sticky = ILLEGAL_ADDRESS;
        break;
    }
    log_line("end", name, s, w->bytes);
}

static void *run(void *argument) {
    stream *s = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!s->count && !s->closing) pthread_cond_wait(&changed, &lock);
        if (!s->count) break;
        work w = s->queue[s->first % s->capacity];
        s->first++;
        s->count--;
        s->busy = 1;
        /* A context with a sticky error does no further work. */
        if (!devices[s->device].sticky) perform(s, &w);
        if (w.kind == TASK) release_task(w.task);
        end_use(w.recording);
        if (w.kind == COPY) copies_queued--;
        s->busy = 0;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static stream *new_stream(int d, int priority) {
    stream *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->alive = 1;
    s->device = d;
    s->priority = priority;
    s->id = (int)++stream_ids;
    s->capacity = 16;
    s->queue = calloc(s->capacity, sizeof *s->queue);
    if (pthread_create(&s->thread, NULL, run, s)) abort();
    pthread_detach(s->thread);
    return s;
}

/* The stream of a handle; null and the legacy handles stand for the default stream of the device. */
static stream *stream_of(stream *s, device *d) {
    if ((uintptr_t)s > 2) return s;
    if (!d->legacy) d->legacy = new_stream((int)(d - devices), 0);
    return d->legacy;
}

static void queue(stream *s, work w) {
    if (s->capture) {
        add_to_graph(s->capture, w);
        return;
    }
    if (s->count == s->capacity) {
        work *wider = calloc(2 * s->capacity, sizeof *wider);
        for (uint64_t i = 0; i < s->count; i++) wider[i] = s->queue[(s->first + i) % s->capacity];
        free(s->queue);
        s->queue = wider;
        s->first = 0;
        s->capacity *= 2;
    }
    s->queue[(s->first + s->count) % s->capacity] = w;
    s->count++;
    if (w.kind == COPY) copies_queued++;
    pthread_cond_broadcast(&changed);
}

#define STREAM(s, handle, d) \
    stream *s = stream_of(handle, d); \
    if (!s->alive) { bad_handles++; FAIL(INVALID_HANDLE); } \
    if (devices[s->device].sticky) FAIL(devices[s->device].sticky)

static void drain(stream *s) {
    while ((s->count || s->busy) && !devices[s->device].sticky) pthread_cond_wait(&changed, &lock);
}

/* Start and devices. */

static void physical_uuid(int index, uint8_t uuid[16]) {
    for (int i = 0; i < 16; i++) uuid[i] = (uint8_t)(0xf0 + index * 3 + i * 7);
}

static void uuid_text(int index, char text[48]) {
    uint8_t u[16];
    physical_uuid(index, u);
    char *p = text + sprintf(text, "GPU");
    for (int i = 0; i < 16; i++)
        p += sprintf(p, i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", u[i]);
}

static void find_devices(void) {
    device all[MAX_DEVICES];
    int count = 0;
    const char *list = setting("DEVICES");
    if (!list) list = "Fake GPU/7.5/1024";
    for (; *list && count < MAX_DEVICES; list = strchr(list, ',') ? strchr(list, ',') + 1 : "") {
        device *d = &all[count];
        memset(d, 0, sizeof *d);
        unsigned long long mib = 1024;
        if (sscanf(list, "%63[^/,]/%d.%d/%llu", d->name, &d->major, &d->minor, &mib) < 1) break;
        d->total = mib << 20;
        d->physical = count++;
    }
    const char *visible = setting("VISIBLE");
    if (!visible) visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!visible) {
        memcpy(devices, all, sizeof all);
        device_count = count;
        return;
    }
    char copy[1024], *rest = copy;
    snprintf(copy, sizeof copy, "%s", visible);
    for (char *item; (item = strsep(&rest, ","));) {
        int found = -1;
        char *end;
        long index = strtol(item, &end, 10);
        if (*item && !*end && index >= 0 && index < count) found = (int)index;
        for (int i = 0; i < count && *item == 'G'; i++) {
            char text[48];
            uuid_text(i, text);
            if (!strncasecmp(text, item, strlen(item))) found = i;
        }
        /* The driver stops at the first one that does not exist. */
        if (found < 0) break;
        devices[device_count++] = all[found];
    }
}

result cuInit(unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    result code = called(__func__, NULL, 0);
    if (!code && !initialized) {
        find_devices();
        if (device_count) initialized = 1;
        else code = NO_DEVICE;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

result cuDriverGetVersion(int *version) {
    pthread_mutex_lock(&lock);
    result code = called(__func__, NULL, 0);
    const char *text = setting("VERSION");
    *version = text ? atoi(text) : 12080;
    pthread_mutex_unlock(&lock);
    return code;
}

static const struct { result code; const char *name, *text; } ERRORS[] = {
    {OK, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
};

result cuGetErrorName(result code, const char **text) {
    *text = NULL;
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].code == code) *text = ERRORS[i].name;
    return *text ? OK : INVALID_VALUE;
}

result cuGetErrorString(result code, const char **text) {
    *text = NULL;
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].code == code) *text = ERRORS[i].text;
    return *text ? OK : INVALID_VALUE;
}

result cuDeviceGetCount(int *count) {
    BEGIN(NULL, 0);
    *count = device_count;
    END;
}

result cuDeviceGet(int *d, int ordinal) {
    BEGIN(NULL, 0);
    if (ordinal < 0 || ordinal >= device_count) FAIL(INVALID_DEVICE);
    *d = ordinal;
    END;
}

#define DEVICE(d) if (d < 0 || d >= device_count) FAIL(INVALID_DEVICE)

result cuDeviceGetName(char *name, int size, int d) {
    BEGIN(NULL, 0);
    DEVICE(d);
    snprintf(name, (size_t)size, "%s", devices[d].name);
    END;
}

result cuDeviceTotalMem_v2(size_t *bytes, int d) {
    BEGIN(NULL, 0);
    DEVICE(d);
    *bytes = devices[d].total;
    END;
}

result cuDeviceGetAttribute(int *value, int attribute, int d) {
    BEGIN(NULL, 0);
    DEVICE(d);
    const char *pools = setting("POOLS");
    switch (attribute) {
    case 75: *value = devices[d].major; break;
    case 76: *value = devices[d].minor; break;
    case 41: *value = 1; break; /* unified addressing */
    case 115: *value = !pools || atoi(pools); break;
    default: *value = 0;
    }
    END;
}

result cuDeviceGetPCIBusId(char *text, int size, int d) {
    BEGIN(NULL, 0);
    DEVICE(d);
    snprintf(text, (size_t)size, "0000:%02X:00.0", 0x3b + devices[d].physical);
    END;
}

result cuDeviceGetUuid(uint8_t uuid[16], int d) {
    BEGIN(NULL, 0);
    DEVICE(d);
    physical_uuid(devices[d].physical, uuid);
    END;
}

result cuDeviceGetUuid_v2(uint8_t uuid[16], int d) { return cuDeviceGetUuid(uuid, d); }

/* Contexts: the handle is the address of the device's `context`. */

static int device_of(const void *context) {
    for (int i = 0; i < device_count; i++)
        if (context == &devices[i].context) return i;
    return -1;
}

result cuDevicePrimaryCtxRetain(void **context, int d) {
    BEGIN(NULL, 0);
    DEVICE(d);
    if (devices[d].sticky) FAIL(devices[d].sticky);
    devices[d].retained++;
    *context = &devices[d].context;
    END;
}

result cuDevicePrimaryCtxRelease_v2(int d) {
    BEGIN(NULL, 0);
    DEVICE(d);
    devices[d].retained--;
    END;
}

result cuDevicePrimaryCtxRelease(int d) { return cuDevicePrimaryCtxRelease_v2(d); }

result cuCtxGetCurrent(void **context) {
    BEGIN(NULL, 0);
    int d = context_depth ? context_stack[context_depth - 1] : -1;
    *context = d < 0 ? NULL : &devices[d].context;
    END;
}

result cuCtxSetCurrent(const void *context) {
    BEGIN(NULL, 0);
    if (!context_depth) context_depth = 1;
    context_stack[context_depth - 1] = device_of(context);
    END;
}

result cuCtxPushCurrent_v2(const void *context) {
    BEGIN(NULL, 0);
    if (device_of(context) < 0 || context_depth == 32) FAIL(INVALID_CONTEXT);
    context_stack[context_depth++] = device_of(context);
    END;
}

result cuCtxPopCurrent_v2(void **context) {
    BEGIN(NULL, 0);
    if (!context_depth) FAIL(INVALID_CONTEXT);
    int d = context_stack[--context_depth];
    if (context) *context = d < 0 ? NULL : &devices[d].context;
    END;
}

result cuCtxGetDevice(int *d) {
    BEGIN(NULL, 0);
    CURRENT(on);
    *d = (int)(on - devices);
    END;
}

result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    BEGIN(NULL, 0);
    CURRENT(d);
    *least = 0;
    *greatest = -5;
    END;
}

result cuProfilerStart(void) {
    BEGIN(NULL, 0);
    CURRENT(d);
    (void)d;
    END;
}

result cuProfilerStop(void) {
    BEGIN(NULL, 0);
    CURRENT(d);
    (void)d;
    END;
}

result cuCtxSynchronize(void) {
    BEGIN(NULL, 0);
    CURRENT(d);
    /* Events and streams are not listed: waits until no memory or copy is outstanding on the default stream. */
    drain(stream_of(NULL, d));
    code = d->sticky;
    END;
}

/* Streams and events. */

result cuStreamCreateWithPriority(stream **s, unsigned flags, int priority) {
    (void)flags;
    BEGIN(NULL, 0);
    CURRENT(d);
    *s = new_stream((int)(d - devices), priority);
    streams_alive++;
    END;
}

result cuStreamCreate(stream **s, unsigned flags) { return cuStreamCreateWithPriority(s, flags, 0); }

result cuStreamGetPriority(stream *s, int *priority) {
    BEGIN(s, 0);
    *priority = s->priority;
    END;
}

result cuStreamDestroy_v2(stream *s) {
    BEGIN(s, 0);
    if (!s || !s->alive) { bad_handles++; FAIL(INVALID_HANDLE); }
    /* Stays allocated, so that a later use is noticed. Queued work still completes. */
    s->alive = 0;
    s->closing = 1;
    streams_alive--;
    pthread_cond_broadcast(&changed);
    END;
}

result cuStreamSynchronize(stream *handle) {
    BEGIN(handle, 0);
    CURRENT(d);
    STREAM(s, handle, d);
    if (s->capture) FAIL(spoil_capture(s->capture));
    drain(s);
    code = devices[s->device].sticky;
    END;
}

result cuStreamQuery(stream *handle) {
    BEGIN(handle, 0);
    CURRENT(d);
    STREAM(s, handle, d);
    if (s->capture) FAIL(spoil_capture(s->capture));
    if (s->count || s->busy) code = NOT_READY;
    END;
}

result cuEventCreate(event **e, unsigned flags) {
    BEGIN(NULL, 0);
    CURRENT(d);
    event *made = calloc(1, sizeof *made);
    if (!made) abort();
    made->alive = 1;
    made->timing = !(flags & 2);
    made->device = (int)(d - devices);
    *e = made;
    events_alive++;
    END;
}

#define EVENT(e) if (!e || !e->alive) { bad_handles++; FAIL(INVALID_HANDLE); } \
    if (devices[e->device].sticky) FAIL(devices[e->device].sticky)

result cuEventDestroy_v2(event *e) {
    BEGIN(NULL, 0);
    EVENT(e);
    e->alive = 0;
    end_use(e->last);
    e->last = NULL;
    events_alive--;
    END;
}

result cuEventRecord(event *e, stream *handle) {
    BEGIN(handle, 0);
    EVENT(e);
    STREAM(s, handle, &devices[e->device]);
    if (s->device != e->device) FAIL(INVALID_HANDLE);
    if (s->capture) goto out; /* of no use outside the graph, and the tests have none inside */
    recording *made = calloc(1, sizeof *made);
    if (!made) abort();
    end_use(e->last);
    e->last = use_recording(made);
    queue(s, (work){.kind = RECORD, .recording = use_recording(made)});
    END;
}

result cuStreamWaitEvent(stream *handle, event *e, unsigned flags) {
    (void)flags;
    BEGIN(handle, 0);
    CURRENT(d);
    EVENT(e);
    STREAM(s, handle, d);
    if (s->capture) goto out;
    queue(s, (work){.kind = WAIT, .recording = use_recording(e->last)});
    END;
}

result cuEventQuery(event *e) {
    BEGIN(NULL, 0);
    EVENT(e);
    if (e->last && !e->last->reached) code = NOT_READY;
    END;
}

result cuEventSynchronize(event *e) {
    BEGIN(NULL, 0);
    EVENT(e);
    recording *captured = use_recording(e->last);
    int device = e->device;
    while (captured && !captured->reached && !devices[device].sticky) pthread_cond_wait(&changed, &lock);
    end_use(captured);
    code = devices[device].sticky;
    END;
}

result cuLaunchHostFunc(stream *handle, void (*f)(void *), void *data) {
    BEGIN(handle, 0);
    CURRENT(d);
    STREAM(s, handle, d);
    queue(s, (work){.kind = HOST, .function = f, .data = data});
    END;
}

/* Device memory. */

result cuMemAlloc_v2(address *at, size_t bytes) {
    BEGIN(NULL, bytes);
    CURRENT(d);
    if (forbidding_capture()) FAIL(spoil_capture(forbidding_capture()));
    allocation *a = allocate((int)(d - devices), bytes, 1);
    if (!a) FAIL(bytes ? OUT_OF_MEMORY : INVALID_VALUE);
    *at = a->at;
    END;
}

result cuMemFree_v2(address at) {
    BEGIN(NULL, 0);
    CURRENT(d);
    if (forbidding_capture()) FAIL(spoil_capture(forbidding_capture()));
    allocation *a = find(at);
    if (!a || a->at != at || a->ipc || a->freed) { double_frees++; FAIL(INVALID_VALUE); }
    release(a);
    END;
}

result cuMemGetInfo_v2(size_t *available, size_t *total) {
    BEGIN(NULL, 0);
    CURRENT(d);
    const char *text = setting("TAKEN");
    uint64_t taken = d->used + ((text ? strtoull(text, NULL, 10) : 0) << 20);
    *available = taken < d->total ? d->total - taken : 0;
    *total = d->total;
    END;
}

result cuMemGetAddressRange_v2(address *base, size_t *bytes, address at) {
    BEGIN(NULL, 0);
    CURRENT(d);
    allocation *a = find(at);
    if (!a) FAIL(NOT_FOUND);
    if (base) *base = a->at;
    if (bytes) *bytes = a->bytes;
    END;
}

#ifndef FAKE_CUDA_WITHOUT_POOLS
struct pool_props { int type, handles, location, id; uint64_t reserved[9]; };

result cuMemPoolCreate(pool **p, const struct pool_props *props) {
    BEGIN(NULL, 0);
    if (props->type != 1 || props->location != 1 || props->id < 0 || props->id >= device_count) FAIL(INVALID_VALUE);
    *p = calloc(1, sizeof **p);
    (*p)->alive = 1;
    (*p)->device_id = props->id;
    pools_alive++;
    END;
}

result cuMemPoolSetAttribute(pool *p, int attribute, uint64_t *value) {
    BEGIN(NULL, 0);
    if (attribute != 4) FAIL(INVALID_VALUE);
    p->threshold = *value;
    END;
}

result cuMemPoolGetAttribute(pool *p, int attribute, uint64_t *value) {
    BEGIN(NULL, 0);
    if (attribute == 4) *value = p->threshold;
    else *value = devices[p->device_id].used;
    END;
}

result cuMemPoolTrimTo(pool *p, size_t keep) {
    (void)p, (void)keep;
    BEGIN(NULL, 0);
    END;
}

result cuMemAllocFromPoolAsync(address *at, size_t bytes, pool *p, stream *handle) {
    BEGIN(handle, bytes);
    STREAM(s, handle, &devices[p->device_id]);
    allocation *a = allocate(p->device_id, bytes, 0);
    if (!a) FAIL(bytes ? OUT_OF_MEMORY : INVALID_VALUE);
    *at = a->at;
    queue(s, (work){.kind = READY, .to = a->at});
    END;
}

result cuMemFreeAsync(address at, stream *handle) {
    BEGIN(handle, 0);
    CURRENT(d);
    STREAM(s, handle, d);
    allocation *a = find(at);
    if (!a || a->at != at || a->freed) { double_frees++; FAIL(INVALID_VALUE); }
    a->freed = 1;
    queue(s, (work){.kind = RELEASE, .to = at});
    END;
}
#endif

/* Host memory. */

result cuMemHostAlloc(void **at, size_t bytes, unsigned flags) {
    (void)flags;
    BEGIN(NULL, bytes);
    CURRENT(d);
    host_block *b = calloc(1, sizeof *b);
    if (!b || posix_memalign(&b->at, 4096, bytes)) abort();
    memset(b->at, 0xcd, bytes);
    b->bytes = bytes;
    b->next = host_blocks;
    host_blocks = b;
    *at = b->at;
    END;
}

result cuMemFreeHost(void *at) {
    BEGIN(NULL, 0);
    CURRENT(d);
    code = INVALID_VALUE;
    for (host_block **p = &host_blocks; *p; p = &(*p)->next) {
        if ((*p)->at != at || (*p)->registered) continue;
        host_block *b = *p;
        *p = b->next;
        free(b->at);
        free(b);
        code = OK;
        break;
    }
    if (code) double_frees++;
    END;
}

result cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags) {
    (void)flags;
    BEGIN(NULL, bytes);
    CURRENT(d);
    if (!bytes || (uintptr_t)at % 4096 || bytes % 4096) FAIL(INVALID_VALUE);
    for (host_block *b = host_blocks; b; b = b->next)
        if ((char *)at < (char *)b->at + b->bytes && (char *)b->at < (char *)at + bytes) FAIL(ALREADY_REGISTERED);
    host_block *b = calloc(1, sizeof *b);
    if (!b) abort();
    *b = (host_block){.at = at, .bytes = bytes, .registered = 1, .next = host_blocks};
    host_blocks = b;
    END;
}

result cuMemHostUnregister(void *at) {
    BEGIN(NULL, 0);
    CURRENT(d);
    code = INVALID_VALUE;
    for (host_block **p = &host_blocks; *p; p = &(*p)->next) {
        if ((*p)->at != at || !(*p)->registered) continue;
        host_block *b = *p;
        *p = b->next;
        free(b);
        code = OK;
        break;
    }
    if (code) double_frees++;
    END;
}

/* Copies. All are queued, those from pageable memory too. */

#define HOST(p) ((address)(uintptr_t)(p))

static result copy(const char *name, address to, address from, size_t bytes, stream *handle, int blocks) {
    pthread_mutex_lock(&lock);
    result code = called(name, handle, bytes);
    if (code) goto out;
    CURRENT(d);
    STREAM(s, handle, d);
    for (host_block *b = host_blocks; b; b = b->next)
        if (is_device_address(to) && from >= HOST(b->at) && from + bytes <= HOST(b->at) + b->bytes)
            pinned_uploads++, pinned_upload_bytes += bytes;
    queue(s, (work){.kind = COPY, .to = to, .from = from, .bytes = bytes});
    if (blocks) {
        drain(s);
        code = d->sticky;
    }
    END;
}

result cuMemcpyAsync(address to, address from, size_t n, stream *s) { return copy(__func__, to, from, n, s, 0); }
result cuMemcpyHtoDAsync_v2(address to, const void *from, size_t n, stream *s) {
    return copy(__func__, to, HOST(from), n, s, 0);
}
result cuMemcpyDtoHAsync_v2(void *to, address from, size_t n, stream *s) {
    return copy(__func__, HOST(to), from, n, s, 0);
}
result cuMemcpyDtoDAsync_v2(address to, address from, size_t n, stream *s) {
    return copy(__func__, to, from, n, s, 0);
}
result cuMemcpy(address to, address from, size_t n) { return copy(__func__, to, from, n, NULL, 1); }
result cuMemcpyHtoD_v2(address to, const void *from, size_t n) { return copy(__func__, to, HOST(from), n, NULL, 1); }
result cuMemcpyDtoH_v2(void *to, address from, size_t n) { return copy(__func__, HOST(to), from, n, NULL, 1); }

result cuMemsetD8Async(address to, unsigned char value, size_t bytes, stream *handle) {
    BEGIN(handle, bytes);
    CURRENT(d);
    STREAM(s, handle, d);
    queue(s, (work){.kind = SET, .to = to, .value = value, .bytes = bytes});
    END;
}

/* IPC: the handle names process and descriptor of the backing, which the other process opens. */

typedef struct { char magic[8]; int pid, file, physical; uint64_t bytes; } ipc_handle;

result cuIpcGetMemHandle(uint8_t handle[64], address at) {
    BEGIN(NULL, 0);
    CURRENT(d);
    allocation *a = find(at);
    if (!a || a->ipc) FAIL(INVALID_VALUE);
    ipc_handle h = {"FAKEIPC", getpid(), a->file, devices[a->device].physical, a->bytes};
    memset(handle, 0, 64);
    memcpy(handle, &h, sizeof h);
    END;
}

typedef struct { uint8_t bytes[64]; } raw_handle;

result cuIpcOpenMemHandle_v2(address *at, raw_handle handle, unsigned flags) {
    (void)flags;
    BEGIN(NULL, 0);
    CURRENT(d);
    ipc_handle h;
    memcpy(&h, handle.bytes, sizeof h);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", h.pid, h.file);
    struct stat facts;
    int file = memcmp(h.magic, "FAKEIPC", 8) ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) FAIL(INVALID_VALUE);
    if (h.physical != d->physical || fstat(file, &facts) || (uint64_t)facts.st_size != h.bytes) {
        close(file);
        FAIL(INVALID_VALUE);
    }
    allocation *a = calloc(1, sizeof *a);
    if (!a) abort();
    a->file = file;
    a->backing = mmap(NULL, h.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (a->backing == MAP_FAILED) abort();
    a->at = DEVICE_BASE + (address)(d - devices) * DEVICE_SPACE + d->next;
    d->next += ((h.bytes + 511) & ~511ull) + 4096;
    a->bytes = h.bytes;
    a->device = (int)(d - devices);
    a->ready = a->ipc = 1;
    a->next = allocations;
    allocations = a;
    *at = a->at;
    END;
}

result cuIpcCloseMemHandle(address at) {
    BEGIN(NULL, 0);
    CURRENT(d);
    allocation *a = find(at);
    if (!a || !a->ipc) { double_frees++; FAIL(INVALID_VALUE); }
    release(a);
    END;
}

/* Modules: a kernel is known by its name. */

result cuModuleLoadData(char **module, const char *text) {
    BEGIN(NULL, 0);
    CURRENT(d);
    if (!strstr(text, ".entry")) FAIL(200);
    *module = strdup(text);
    modules_alive++;
    END;
}

result cuModuleUnload(char *module) {
    BEGIN(NULL, 0);
    CURRENT(d);
    free(module);
    modules_alive--;
    END;
}

result cuModuleGetFunction(const function **f, const char *module, const char *name) {
    static const function KNOWN[] = {{0}, {1}, {2}};
    BEGIN(NULL, 0);
    CURRENT(d);
    char entry[128];
    snprintf(entry, sizeof entry, ".entry %s", name);
    code = NOT_FOUND;
    for (int i = 0; i < 3 && strstr(module, entry); i++)
        if (!strcmp(name, KERNELS[i])) { *f = &KNOWN[i]; code = OK; }
    END;
}

result cuLaunchKernel(const function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, stream *handle, void **parameters, void **extra) {
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)extra;
    BEGIN(handle, 0);
    CURRENT(d);
    STREAM(s, handle, d);
    work w = {.kind = KERNEL, .kernel = f->kernel};
    static const size_t SIZES[3][4] = {{8, 8, 8, 4}, {8}, {0}};
    for (int i = 0; i < 4 && SIZES[f->kernel][i]; i++) memcpy(&w.arguments[i], parameters[i], SIZES[f->kernel][i]);
    queue(s, w);
    END;
}

/* Functions of other fake libraries as kernels, and graphs. */

result fake_cuda_launch(stream *handle, const char *name, task_function run, void (*drop)(void *), void *data, uint64_t ns) {
    BEGIN(handle, 0);
    CURRENT(d);
    STREAM(s, handle, d);
    queue(s, (work){.kind = TASK, .task = new_task(name, run, drop, data, ns)});
    END;
}

result cuStreamBeginCapture_v2(stream *s, int mode) {
    BEGIN(s, 0);
    if ((uintptr_t)s <= 2) FAIL(CAPTURE_UNSUPPORTED);
    if (!s->alive) { bad_handles++; FAIL(INVALID_HANDLE); }
    if (s->capture) FAIL(INVALID_VALUE);
    s->capture = new_graph();
    begin_capture(s->capture, mode);
    END;
}

result cuStreamEndCapture(stream *s, graph **g) {
    BEGIN(s, 0);
    *g = NULL;
    if (!s->capture) FAIL(INVALID_VALUE);
    graph *captured = s->capture;
    s->capture = NULL;
    end_capture(captured);
    if (captured->spoilt) {
        free_graph(captured);
        FAIL(CAPTURE_INVALIDATED);
    }
    *g = captured;
    END;
}

result cuStreamIsCapturing(stream *s, int *status) {
    BEGIN(s, 0);
    *status = (uintptr_t)s <= 2 || !s->capture ? 0 : s->capture->spoilt ? 2 : 1;
    END;
}

result cuThreadExchangeStreamCaptureMode(int *mode) {
    BEGIN(NULL, 0);
    *mode = 0;
    END;
}

result cuGraphInstantiateWithFlags(graph **executable, graph *g, uint64_t flags) {
    (void)flags;
    BEGIN(NULL, 0);
    *executable = copy_graph(g);
    END;
}

result cuGraphLaunch(graph *executable, stream *handle) {
    BEGIN(handle, 0);
    CURRENT(d);
    STREAM(s, handle, d);
    for (uint64_t i = 0; i < executable->count; i++) {
        if (executable->work[i].kind == TASK) executable->work[i].task->references++;
        queue(s, executable->work[i]);
    }
    END;
}

result cuGraphExecDestroy(graph *executable) {
    BEGIN(NULL, 0);
    free_graph(executable);
    END;
}

result cuGraphDestroy(graph *g) {
    BEGIN(NULL, 0);
    free_graph(g);
    END;
}

/* The report. */

static int report(char *text, size_t size) {
    uint64_t blocks = 0, bytes = 0, opened = 0, pinned = 0, registered = 0, peak = 0;
    for (allocation *a = allocations; a; a = a->next) {
        if (a->ipc) opened++;
        else if (!a->freed) blocks++, bytes += a->bytes;
    }
    for (host_block *b = host_blocks; b; b = b->next) *(b->registered ? &registered : &pinned) += b->bytes;
    for (int i = 0; i < device_count; i++) peak += devices[i].peak;
    return snprintf(text, size,
                    "device_blocks %llu\ndevice_bytes %llu\npeak_bytes %llu\nipc_open %llu\npinned_bytes %llu\n"
                    "streams %llu\nevents %llu\nmodules %llu\ngraphs %llu\ndouble_frees %llu\nbad_handles %llu\n"
                    "copies_queued %llu\npinned_uploads %llu\npinned_upload_bytes %llu\n"
                    "registered_bytes %llu\n",
                    (unsigned long long)blocks, (unsigned long long)bytes, (unsigned long long)peak,
                    (unsigned long long)opened, (unsigned long long)pinned, (unsigned long long)streams_alive,
                    (unsigned long long)events_alive, (unsigned long long)modules_alive, (unsigned long long)graphs_alive,
                    (unsigned long long)double_frees, (unsigned long long)bad_handles,
                    (unsigned long long)copies_queued, (unsigned long long)pinned_uploads,
                    (unsigned long long)pinned_upload_bytes, (unsigned long long)registered);
}

void fake_cuda_report(char *text, size_t size) {
    pthread_mutex_lock(&lock);
    report(text, size);
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void at_exit(void) {
    const char *path = setting("REPORT");
    FILE *file = path && *path ? fopen(path, "ae") : NULL;
    if (!file) return;
    char text[1024];
    report(text, sizeof text);
    fputs(text, file);
    fclose(file);
}
