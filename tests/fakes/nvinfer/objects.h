// Objects of the fake nvinfer, a test double: laid out as TensorRT lays out its own, two pointers
// to callers, of which the second leads to the object with the virtual table that callers use.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

// Ends the process: a caller has made an error that the real library would not survive.
[[noreturn]] inline void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "fake nvinfer %d: ", MAJOR);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    abort();
}

enum Class { RUNTIME, ENGINE, CONTEXT, REFITTER, REGISTRY, PUBLIC, DELETED };
constexpr const char *CLASS_NAMES[] = {"VRuntime", "VCudaEngine", "VExecutionContext", "VRefitter",
                                       "IPluginRegistry", "a public class", "a deleted object"};

template <Class C, int N> void unused_slot() { die("slot %d of %s is called, which is not the method of any test", N, CLASS_NAMES[C]); }

// A virtual table in which every slot ends the process until a method is put there.
template <Class C> struct Table {
    void *slots[80];
    Table() { fill(std::make_integer_sequence<int, 80>()); }
    template <int... N> void fill(std::integer_sequence<int, N...>) { ((slots[N] = reinterpret_cast<void *>(&unused_slot<C, N>)), ...); }
    template <typename F> Table &put(int slot, F *method) {
        if (slot >= 0) slots[slot] = reinterpret_cast<void *>(method);
        return *this;
    }
};

struct Object;

// What callers hold.
struct Face {
    void **table;
    Object *object;
};

struct Object {
    void **table;
    Face face;
    void (*destroy)(Object *);
};

inline void delete_face(Face *face) {
    static Table<DELETED> deleted;
    Object *object = face->object;
    // Stays allocated, so that a later use is noticed.
    face->table = object->table = deleted.slots;
    object->destroy(object);
}

inline Face *publish(Object *object, void **table, void (*destroy)(Object *)) {
    static Table<PUBLIC> faces = Table<PUBLIC>().put(1, delete_face);
    object->table = table;
    object->destroy = destroy;
    object->face = {faces.slots, object};
    return &object->face;
}

// Method `slot` of an interface that the caller of the library implements.
template <typename R, typename... A> R call(void *object, int slot, A... arguments) {
    void **table = *static_cast<void ***>(object);
    return reinterpret_cast<R (*)(void *, A...)>(table[slot])(object, arguments...);
}

struct Dims {
    int32_t rank;
#if MAJOR == 8
    int32_t d[8];
#else
    int64_t d[8];
#endif
};
static_assert(sizeof(Dims) == (MAJOR == 8 ? 36 : 72));

struct InterfaceInfo {
    const char *kind;
    int32_t major, minor;
};
