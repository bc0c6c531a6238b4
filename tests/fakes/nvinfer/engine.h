// Engines of the fake nvinfer, a test double: what a plan says of its tensors and profiles.
#pragma once
#include "library.h"
#include "plan.h"
#include <algorithm>
#include <memory>
#include <unistd.h>

struct Engine : Object {
    Plan plan;
    Logger log;
    void *allocator;
    Memory weights;
    int device;
    std::mutex lock;
    std::set<int> taken_profiles;
    std::map<std::string, double> refitted;
    long contexts = 0;
};

// A profile serves one context at a time on TensorRT 8, unless the plan allows more.
inline bool exclusive_profiles(const Engine &e) {
    auto dynamic = [](const Tensor &t) { return t.input && (t.is_shape || std::count(t.shape.begin(), t.shape.end(), -1)); };
    return MAJOR == 8 && !e.plan.implicit_batch && !e.plan.shared_profiles &&
           std::any_of(e.plan.tensors.begin(), e.plan.tensors.end(), dynamic);
}

inline Dims dims_of(const Shape &shape) {
    Dims d = {};
    d.rank = int32_t(shape.size());
    for (size_t i = 0; i < shape.size(); i++) d.d[i] = decltype(+d.d[0])(shape[i]);
    return d;
}

inline Dims no_dims() {
    Dims d = {};
    d.rank = -1;
    return d;
}

inline Tensor *tensor_of(Engine *e, const char *name) {
    Tensor *t = e->plan.find(name);
    if (!t) e->log(ERROR, std::string("Error Code 3: API Usage Error (no tensor '") + (name ? name : "") + "')");
    return t;
}

namespace engine {

static int32_t nb_tensors(Engine *e) { return int32_t(e->plan.tensors.size()); }
static const char *tensor_name(Engine *e, int32_t i) {
    return i >= 0 && i < nb_tensors(e) ? e->plan.tensors[size_t(i)].name.c_str() : nullptr;
}
static int32_t binding_index(Engine *e, const char *name) {
    for (int32_t i = 0; i < nb_tensors(e); i++)
        if (e->plan.tensors[size_t(i)].name == name) return i;
    return -1;
}
static Dims tensor_shape(Engine *e, const char *name) {
    Tensor *t = tensor_of(e, name);
    return t ? dims_of(t->shape) : no_dims();
}
static int32_t tensor_type(Engine *e, const char *name) {
    Tensor *t = tensor_of(e, name);
    return t ? int32_t(t->type) : 0;
}
static int32_t tensor_location(Engine *e, const char *name) {
    Tensor *t = tensor_of(e, name);
    return t && t->is_shape;
}
static bool is_shape_inference_io(Engine *e, const char *name) {
    Tensor *t = tensor_of(e, name);
    return t && t->is_shape;
}
static int32_t io_mode(Engine *e, const char *name) {
    Tensor *t = tensor_of(e, name);
    return t ? t->input ? 1 : 2 : 0;
}
static int32_t bytes_per_component(Engine *, const char *) { return -1; }
static int32_t components_per_element(Engine *, const char *) { return -1; }
static int32_t format(Engine *e, const char *) { return e->plan.format; }
static int32_t format_of_profile(Engine *e, const char *, int32_t) { return e->plan.format; }
static const char *format_description(Engine *, const char *) { return "Row-major linear format (kLINEAR)"; }
static int32_t vectorized_dim(Engine *, const char *) { return -1; }
static int32_t nb_profiles(Engine *e) { return e->plan.implicit_batch ? 0 : e->plan.profiles; }
static bool has_implicit_batch(Engine *e) { return e->plan.implicit_batch > 0; }
static int32_t max_batch_size(Engine *e) { return e->plan.implicit_batch ? e->plan.implicit_batch : 1; }
static bool is_refittable(Engine *e) { return !e->plan.stripped.empty(); }
static const char *name(Engine *) { return "fake"; }
static uint64_t device_memory_size(Engine *e) { return e->plan.scratch; }
static int32_t nb_layers(Engine *e) { return int32_t(e->plan.steps.size()); }
static int32_t nb_aux_streams(Engine *) { return 0; }

static Profile *profile_of(Engine *e, const char *name, int32_t number) {
    Tensor *t = tensor_of(e, name);
    if (!t || number < 0 || number >= e->plan.profiles) return nullptr;
    return t->profiles.count(number) ? &t->profiles[number] : nullptr;
}
static Dims profile_shape(Engine *e, const char *name, int32_t number, int32_t which) {
    Tensor *t = tensor_of(e, name);
    if (!t || !t->input || number < 0 || number >= e->plan.profiles || which < 0 || which > 2) return no_dims();
    Profile *p = profile_of(e, name, number);
    return dims_of(p && !t->is_shape ? p->limits[which] : t->shape);
}
static const int64_t *profile_values_64(Engine *e, const char *name, int32_t number, int32_t which) {
    Profile *p = tensor_location(e, name) ? profile_of(e, name, number) : nullptr;
    return p ? p->limits[which].data() : nullptr;
}
static const int32_t *profile_values_32(Engine *e, const char *name, int32_t number, int32_t which) {
    Profile *p = tensor_location(e, name) ? profile_of(e, name, number) : nullptr;
    return p ? p->narrow[which].data() : nullptr;
}
static const int32_t *profile_shape_values(Engine *e, int32_t number, int32_t index, int32_t which) {
    const char *name = tensor_name(e, index);
    return name ? profile_values_32(e, name, number, which) : nullptr;
}

static void destroy(Object *object) {
    Engine *e = static_cast<Engine *>(object);
    if (e->contexts) die("an engine is deleted before its %ld contexts", e->contexts);
    e->weights.free();
    usleep(e->plan.close_us);
    count(&Counts::engines, -1);
}

Face *create_context(Engine *e, int32_t strategy);
static Face *create_plain_context(Engine *e) { return create_context(e, 0); }

static void **table() {
    static Table<ENGINE> table = Table<ENGINE>()
        .put(engine_slot::nb_bindings, nb_tensors)
        .put(engine_slot::binding_index, engine::binding_index)
        .put(engine_slot::binding_name, tensor_name)
        .put(engine_slot::max_batch_size, engine::max_batch_size)
        .put(engine_slot::nb_layers, engine::nb_layers)
        .put(engine_slot::device_memory_size, engine::device_memory_size)
        .put(engine_slot::device_memory_size_v2, engine::device_memory_size)
        .put(engine_slot::is_refittable, engine::is_refittable)
        .put(engine_slot::name, engine::name)
        .put(engine_slot::nb_profiles, engine::nb_profiles)
        .put(engine_slot::profile_shape_values, engine::profile_shape_values)
        .put(engine_slot::profile_tensor_values, profile_values_32)
        .put(engine_slot::profile_tensor_values_v2, profile_values_64)
        .put(engine_slot::has_implicit_batch, engine::has_implicit_batch)
        .put(engine_slot::tensor_shape, engine::tensor_shape)
        .put(engine_slot::tensor_type, engine::tensor_type)
        .put(engine_slot::tensor_location, engine::tensor_location)
        .put(engine_slot::is_shape_inference_io, engine::is_shape_inference_io)
        .put(engine_slot::io_mode, engine::io_mode)
        .put(engine_slot::bytes_per_component, engine::bytes_per_component)
        .put(engine_slot::components_per_element, engine::components_per_element)
        .put(engine_slot::format, engine::format)
        .put(engine_slot::format_of_profile, engine::format_of_profile)
        .put(engine_slot::format_description, engine::format_description)
        .put(engine_slot::vectorized_dim, engine::vectorized_dim)
        .put(engine_slot::profile_shape, engine::profile_shape)
        .put(engine_slot::nb_io_tensors, nb_tensors)
        .put(engine_slot::io_tensor_name, tensor_name)
        .put(engine_slot::nb_aux_streams, engine::nb_aux_streams);
    if (MAJOR == 8) table.put(engine_slot::create_context, create_plain_context);
    else table.put(engine_slot::create_context, create_context);
    return table.slots;
}

} // namespace engine
