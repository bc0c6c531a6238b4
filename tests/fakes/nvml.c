/* Fake NVIDIA management library (NVML) for tests. A test double: its figures are made up.
 *
 * Environment:
 *   FAKE_NVML_DEVICES  how many; default 1. Their UUIDs are those of tests/fakes/cuda.c, by physical index
 *   FAKE_NVML_FAIL     names of functions that fail, separated by commas
 *   FAKE_NVML_ENERGY   file that holds the energy counter in mJ, read at each call; default 5000 mJ
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
typedef struct device { int index; } device;
static device devices[16];

static int count(void) {
    const char *text = getenv("FAKE_NVML_DEVICES");
    int n = text ? atoi(text) : 1;
    return n < 0 ? 0 : n > 16 ? 16 : n;
}

static int fails(const char *name) {
    const char *list = getenv("FAKE_NVML_FAIL");
    const char *at = list ? strstr(list, name) : NULL;
    size_t length = strlen(name);
    return at && (at == list || at[-1] == ',') && (at[length] == ',' || !at[length]);
}

#define MAY_FAIL if (fails(__func__)) return NOT_SUPPORTED

static void uuid_of(int index, char *text) {
    char *p = text + sprintf(text, "GPU");
    for (int i = 0; i < 16; i++)
        p += sprintf(p, i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                     (uint8_t)(0xf0 + index * 3 + i * 7));
}

int nvmlInit_v2(void) {
    MAY_FAIL;
    for (int i = 0; i < 16; i++) devices[i].index = i;
    return OK;
}

int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int code) { return code == NOT_SUPPORTED ? "Not Supported" : "an error"; }

int nvmlDeviceGetCount_v2(unsigned *n) {
    MAY_FAIL;
    *n = (unsigned)count();
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **d) {
    if (index >= (unsigned)count()) return INVALID_ARGUMENT;
    *d = &devices[index];
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device **d) {
    MAY_FAIL;
    for (int i = 0; i < count(); i++) {
        char text[48];
        uuid_of(i, text);
        if (!strcmp(text, uuid)) {
            *d = &devices[i];
            return OK;
        }
    }
    return NOT_FOUND;
}

int nvmlDeviceGetIndex(device *d, unsigned *index) {
    *index = (unsigned)d->index;
    return OK;
}

int nvmlDeviceGetUUID(device *d, char *text, unsigned size) {
    char whole[48];
    uuid_of(d->index, whole);
    snprintf(text, size, "%s", whole);
    return OK;
}

int nvmlDeviceGetName(device *d, char *text, unsigned size) {
    snprintf(text, size, "Fake NVML GPU %d", d->index);
    return OK;
}

int nvmlDeviceGetUtilizationRates(device *d, unsigned rates[2]) {
    MAY_FAIL;
    rates[0] = 25u + (unsigned)d->index;
    rates[1] = 10;
    return OK;
}

typedef struct { unsigned version; unsigned long long total, reserved, available, used; } memory;

int nvmlDeviceGetMemoryInfo_v2(device *d, memory *m) {
    MAY_FAIL;
    m->total = 1024ull << 20;
    m->reserved = 1 << 20;
    m->used = (100ull + (unsigned)d->index) << 20;
    m->available = m->total - m->reserved - m->used;
    return OK;
}

int nvmlDeviceGetPowerUsage(device *d, unsigned *mw) {
    MAY_FAIL;
    *mw = 70500u + (unsigned)d->index;
    return OK;
}

int nvmlDeviceGetEnforcedPowerLimit(device *d, unsigned *mw) {
    (void)d;
    MAY_FAIL;
    *mw = 250000;
    return OK;
}

int nvmlDeviceGetTotalEnergyConsumption(device *d, unsigned long long *mj) {
    (void)d;
    MAY_FAIL;
    *mj = 5000;
    const char *path = getenv("FAKE_NVML_ENERGY");
    FILE *file = path ? fopen(path, "re") : NULL;
    if (file) {
        if (fscanf(file, "%llu", mj) != 1) *mj = 5000;
        fclose(file);
    }
    return OK;
}
