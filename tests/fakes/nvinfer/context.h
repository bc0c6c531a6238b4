// Execution contexts of the fake nvinfer, a test double: shapes, addresses, and executions on a
// stream of the fake driver.
#pragma once
#include "compute.h"
#include "engine.h"
#include <atomic>

struct Binding {
    Shape shape;
    bool is_set = false;
    void *address = nullptr, *allocator = nullptr;
};

struct Context : Object {
    Engine *engine;
    Memory scratch;
    bool own_scratch;
    int profile = -1;
    std::map<std::string, Binding> bindings;
    std::atomic<bool> busy{false};
};

// One call at a time.
struct Exclusive {
    Context *context;
    explicit Exclusive(Context *c) : context(c) {
        if (c->busy.exchange(true)) die("two threads use a context at once");
    }
    ~Exclusive() { context->busy = false; }
};

namespace context {

static bool refuse(Context *c, const std::string &text) {
    c->engine->log(ERROR, "IExecutionContext::" + text);
    return false;
}

static std::string text_of(const Shape &shape) {
    std::string text = "[";
    for (int64_t d : shape) text += (text.size() > 1 ? "," : "") + std::to_string(d);
    return text + "]";
}

static bool set_profile(Context *c, int32_t number, Stream) {
    Exclusive guard(c);
    Engine *e = c->engine;
    std::lock_guard<std::mutex> lock(e->lock);
    if (number < 0 || number >= e->plan.profiles)
        return refuse(c, "setOptimizationProfileAsync: Error Code 3: API Usage Error (profileIndex " + std::to_string(number) +
                             " out of " + std::to_string(e->plan.profiles) + ")");
    if (number == c->profile) return true;
    if (exclusive_profiles(*e) && !e->taken_profiles.insert(number).second)
        return refuse(c, "setOptimizationProfileAsync: Error Code 3: Profile " + std::to_string(number) +
                             " has been chosen by another IExecutionContext. Use another profileIndex or destroy the "
                             "IExecutionContext that use this profile.");
    e->taken_profiles.erase(c->profile);
    c->profile = number;
    return true;
}

static int32_t profile(Context *c) { return c->profile; }

// Why the shape, or the values of a shape tensor, are refused.
static std::string outside(const Context *c, const Tensor &t, const Shape &got) {
    auto found = t.profiles.find(c->profile);
    if (found == t.profiles.end()) return "";
    const Profile &p = found->second;
    for (size_t i = 0; i < got.size() && i < p.limits[0].size(); i++)
        if (got[i] < p.limits[0][i] || got[i] > p.limits[2][i])
            return "Supplied binding " + text_of(got) + " for input '" + t.name + "' does not satisfy optimization profile " +
                   std::to_string(c->profile) + ": min " + text_of(p.limits[0]) + ", max " + text_of(p.limits[2]);
    return "";
}

static bool set_input_shape(Context *c, const char *name, const Dims *dims) {
    Exclusive guard(c);
    Tensor *t = tensor_of(c->engine, name);
    if (!t || !t->input) return refuse(c, "setInputShape: Error Code 3: API Usage Error (not an input)");
    if (fails("setInputShape")) return refuse(c, "setInputShape: injected failure");
    Shape got(dims->d, dims->d + std::max(dims->rank, 0));
    if (got.size() != t->shape.size()) return refuse(c, "setInputShape: Error Code 3: rank of '" + t->name + "' differs");
    for (size_t i = 0; i < got.size(); i++)
        if (t->shape[i] >= 0 && got[i] != t->shape[i])
            return refuse(c, "setInputShape: Error Code 3: Static dimension mismatch while setting input shape for '" + t->name + "'");
    std::string problem = t->is_shape ? "" : outside(c, *t, got);
    if (!problem.empty()) return refuse(c, "setInputShape: Error Code 3: " + problem);
    c->bindings[t->name].shape = got;
    c->bindings[t->name].is_set = true;
    return true;
}

static bool set_tensor_address(Context *c, const char *name, void *at) {
    Exclusive guard(c);
    Tensor *t = tensor_of(c->engine, name);
    if (!t) return false;
    if (!t->is_shape && reinterpret_cast<uint64_t>(at) % 256) die("'%s' at %p is not aligned to 256 bytes", name, at);
    c->bindings[t->name].address = at;
    return true;
}

static void *tensor_address(Context *c, const char *name) { return c->bindings[name].address; }

static bool set_output_allocator(Context *c, const char *name, void *allocator) {
    Exclusive guard(c);
    Tensor *t = tensor_of(c->engine, name);
    if (!t || t->input) return refuse(c, "setOutputAllocator: Error Code 3: API Usage Error (not an output)");
    c->bindings[t->name].allocator = allocator;
    return true;
}

// Values of a shape tensor, from host memory.
static bool values_of(Context *c, const Tensor &t, Shape &values) {
    const Binding &b = c->bindings[t.name];
    if (!b.address) return refuse(c, "enqueueV3: Error Code 3: Address is not set for input tensor " + t.name);
    const Shape &shape = b.is_set ? b.shape : t.shape;
    for (int64_t i = 0; i < elements(shape); i++)
        values.push_back(t.type == Type::INT64 ? static_cast<int64_t *>(b.address)[i] : static_cast<int32_t *>(b.address)[i]);
    std::string problem = outside(c, t, values);
    return problem.empty() || refuse(c, "enqueueV3: Error Code 3: " + problem);
}

// The shape of a tensor, -1 where it depends on data; false if an input has none.
static bool shape_of(Context *c, const std::string &name, Shape &shape) {
    Tensor *t = c->engine->plan.find(name.c_str());
    if (!t) return refuse(c, "enqueueV3: the plan names no tensor " + name);
    if (t->input) {
        shape = c->bindings[name].is_set ? c->bindings[name].shape : t->shape;
        if (std::count(shape.begin(), shape.end(), -1))
            return refuse(c, "enqueueV3: Error Code 3: Input shape is not set for '" + name + "'");
        return true;
    }
    for (const Step &step : c->engine->plan.steps) {
        if (step.out != name) continue;
        Shape in;
        if (!shape_of(c, step.in[0], in)) return false;
        if (step.op == "resize") {
            Tensor *values = c->engine->plan.find(step.in[1].c_str());
            shape.clear();
            return values && values_of(c, *values, shape);
        }
        if (step.op == "nonzero") shape = {-1};
        else if (step.op == "shape") shape = {int64_t(in.size())};
        else shape = in;
        return true;
    }
    return refuse(c, "enqueueV3: the plan does not compute " + name);
}

static Dims tensor_shape(Context *c, const char *name) {
    Exclusive guard(c);
    Shape shape;
    Tensor *t = tensor_of(c->engine, name);
    if (!t) return no_dims();
    if (t->input) return dims_of(c->bindings[t->name].is_set ? c->bindings[t->name].shape : t->shape);
    return shape_of(c, t->name, shape) ? dims_of(shape) : no_dims();
}

static int32_t infer_shapes(Context *c, int32_t, const char **) {
    Exclusive guard(c);
    Shape shape;
    for (const Tensor &t : c->engine->plan.tensors)
        if (!shape_of(c, t.name, shape)) return -1;
    return 0;
}

static int64_t max_output_size(Context *c, const char *name) {
    Exclusive guard(c);
    Tensor *t = tensor_of(c->engine, name);
    Shape shape;
    if (!t || t->input || !shape_of(c, t->name, shape)) return -1;
    // As many indices as the input has elements.
    for (const Step &step : c->engine->plan.steps)
        if (step.out == t->name && step.op == "nonzero" && !shape_of(c, step.in[0], shape)) return -1;
    return elements(shape) * int64_t(bytes_of(t->type));
}

// Where an output goes, of a shape that is known by now.
static bool place(Context *c, const Tensor &t, const Shape &shape, Stream stream, void *&at) {
    Binding &b = c->bindings[t.name];
    at = b.address;
    if (b.allocator) {
        uint64_t bytes = std::max<uint64_t>(uint64_t(elements(shape)) * bytes_of(t.type), 1);
        if (MAJOR == 8) {
            if (call<int32_t>(b.allocator, output_slot::version) != 1) die("an output allocator is not of version 1");
            at = call<void *>(b.allocator, output_slot::reallocate, t.name.c_str(), b.address, bytes, uint64_t(256));
        } else {
            auto info = call<InterfaceInfo>(b.allocator, output_slot::info);
            if (strcmp(info.kind, "IOutputAllocator") || info.major != 1) die("an output allocator says that it is %s", info.kind);
            at = call<void *>(b.allocator, output_slot::reallocate_async, t.name.c_str(), b.address, bytes, uint64_t(256), stream);
        }
        Dims dims = dims_of(shape);
        call<void>(b.allocator, output_slot::notify_shape, t.name.c_str(), static_cast<const Dims *>(&dims));
        if (!at) return refuse(c, "enqueueV3: Error Code 2: output allocator returned nullptr for '" + t.name + "'");
    }
    if (!at) return refuse(c, "enqueueV3: Error Code 3: Neither address or allocator is set for output tensor " + t.name);
    if (!t.is_shape && reinterpret_cast<uint64_t>(at) % 256) die("'%s' at %p is not aligned to 256 bytes", t.name.c_str(), at);
    return true;
}

static bool launch(Context *c, std::unique_ptr<Task> &task, Stream stream) {
    uint64_t ns = task->sleep_us * 1000;
    int failed = driver().launch(stream, "nvinfer", run_task, drop_task, task.release(), ns);
    task = std::make_unique<Task>();
    return !failed || refuse(c, "enqueueV3: Error Code 1: Cuda Runtime (" + std::to_string(failed) + ")");
}

// The indices of elements that are not zero: how many there are is known only after the stream has
// computed the input.
static bool nonzero(Context *c, const Tensor &in, void *from, const Shape &shape, const Tensor &out, Stream stream,
                    std::unique_ptr<Task> &task) {
    if (!launch(c, task, stream)) return false;
    std::vector<uint8_t> data(uint64_t(elements(shape)) * bytes_of(in.type));
    int failed = driver().synchronize(stream);
    if (!failed) failed = driver().download(data.data(), reinterpret_cast<uint64_t>(from), data.size());
    if (failed) return refuse(c, "enqueueV3: Error Code 1: Cuda Runtime (" + std::to_string(failed) + ")");
    std::vector<int64_t> found;
    for (int64_t i = 0; i < elements(shape); i++) {
        const uint8_t *element = data.data() + uint64_t(i) * bytes_of(in.type);
        if (std::any_of(element, element + bytes_of(in.type), [](uint8_t b) { return b; })) found.push_back(i);
    }
    void *at;
    if (!place(c, out, {int64_t(found.size())}, stream, at)) return false;
    task->steps.push_back({Operation::INDICES, out.type, 0, 0, reinterpret_cast<uint64_t>(at), found.size(), 0, 0, found});
    return true;
}

static bool queue_step(Context *c, const Step &step, std::map<std::string, void *> &at, Stream stream, std::unique_ptr<Task> &task) {
    Plan &plan = c->engine->plan;
    const Tensor *in = plan.find(step.in[0].c_str()), *out = plan.find(step.out.c_str());
    Shape from, to;
    if (!in || !out || !shape_of(c, step.in[0], from)) return refuse(c, "enqueueV3: the plan is wrong");
    if (step.op == "nonzero") return nonzero(c, *in, at[step.in[0]], from, *out, stream, task);
    if (!shape_of(c, step.out, to) || !place(c, *out, to, stream, at[step.out])) return false;
    if (step.op == "shape") {
        for (size_t i = 0; i < from.size(); i++) {
            if (out->type == Type::INT64) static_cast<int64_t *>(at[step.out])[i] = from[i];
            else static_cast<int32_t *>(at[step.out])[i] = int32_t(from[i]);
        }
        return true;
    }
    auto address = [&](const std::string &name) { return reinterpret_cast<uint64_t>(at[name]); };
    double factor = step.is_refitted ? c->engine->refitted[step.in[1]] : step.factor;
    Operation operation = step.op == "add"     ? Operation::ADD
                          : step.op == "sub"   ? Operation::SUBTRACT
                          : step.op == "scale" ? Operation::SCALE
                                               : Operation::REPEAT;
    bool is_binary = operation == Operation::ADD || operation == Operation::SUBTRACT;
    task->steps.push_back({operation, out->type, address(step.in[0]), is_binary ? address(step.in[1]) : 0,
                           address(step.out), uint64_t(elements(to)), uint64_t(elements(from)), factor, {}});
    return true;
}

static bool execute(Context *c, Stream stream) {
    Engine *e = c->engine;
    int device = -1;
    if (driver().current(&device) || device != e->device) die("execution on device %d of an engine of device %d", device, e->device);
    count(&Counts::executions, 1);
    if (e->plan.fails || fails("enqueue")) return refuse(c, "enqueueV3: Error Code 7: Internal Error (the plan fails)");
    if (c->profile < 0 && !e->plan.implicit_batch) return refuse(c, "enqueueV3: Error Code 3: no optimization profile is set");
    if (e->plan.scratch && !c->own_scratch && !c->scratch.at) return refuse(c, "enqueueV3: Error Code 3: no device memory is set");
    if (e->refitted.size() < e->plan.stripped.size()) return refuse(c, "enqueueV3: Error Code 4: the engine lacks weights");
    auto task = std::make_unique<Task>();
    std::map<std::string, void *> at;
    Shape shape;
    for (const Tensor &t : e->plan.tensors) {
        if (!t.input) continue;
        if (!(at[t.name] = c->bindings[t.name].address))
            return refuse(c, "enqueueV3: Error Code 3: Address is not set for input tensor " + t.name);
        if (t.is_shape ? !values_of(c, t, shape) : !shape_of(c, t.name, shape)) return false;
        shape.clear();
    }
    for (const Step &step : e->plan.steps)
        if (!queue_step(c, step, at, stream, task)) return false;
    task->sleep_us = e->plan.sleep_us;
    task->faults = e->plan.faults;
    return launch(c, task, stream);
}

static bool enqueue_v3(Context *c, Stream stream) {
    Exclusive guard(c);
    if (c->engine->plan.implicit_batch) return refuse(c, "enqueueV3: Error Code 3: the engine has an implicit batch dimension");
    return execute(c, stream);
}

static bool enqueue(Context *c, int32_t batch, void *const *addresses, Stream stream, void *) {
    Exclusive guard(c);
    Plan &plan = c->engine->plan;
    if (!plan.implicit_batch) return refuse(c, "enqueue: Error Code 3: the engine has an explicit batch dimension");
    if (batch < 1 || batch > plan.implicit_batch)
        return refuse(c, "enqueue: Error Code 3: Batch size " + std::to_string(batch) + " is larger than " +
                             std::to_string(plan.implicit_batch));
    for (size_t i = 0; i < plan.tensors.size(); i++) {
        Binding &b = c->bindings[plan.tensors[i].name];
        b.shape = plan.tensors[i].shape;
        b.shape.insert(b.shape.begin(), batch);
        b.is_set = true;
        b.address = addresses[i];
    }
    return execute(c, stream);
}

static void set_device_memory(Context *c, void *at) {
    if (c->own_scratch) die("device memory is set for a context that has its own");
    c->scratch.at = at;
}
static void set_device_memory_v2(Context *c, void *at, int64_t) { set_device_memory(c, at); }
static bool set_temporary_allocator(Context *, void *) { return true; }
static void set_name(Context *, const char *) {}

static void destroy(Object *object) {
    Context *c = static_cast<Context *>(object);
    if (c->own_scratch) c->scratch.free();
    std::lock_guard<std::mutex> lock(c->engine->lock);
    c->engine->taken_profiles.erase(c->profile);
    c->engine->contexts--;
    count(&Counts::contexts, -1);
}

static void **table() {
    static Table<CONTEXT> table = Table<CONTEXT>()
        .put(context_slot::enqueue, context::enqueue)
        .put(context_slot::set_name, context::set_name)
        .put(context_slot::set_device_memory, context::set_device_memory)
        .put(context_slot::profile, context::profile)
        .put(context_slot::set_profile, context::set_profile)
        .put(context_slot::set_input_shape, context::set_input_shape)
        .put(context_slot::tensor_shape, context::tensor_shape)
        .put(context_slot::set_tensor_address, context::set_tensor_address)
        .put(context_slot::tensor_address, context::tensor_address)
        .put(context_slot::set_input_address, context::set_tensor_address)
        .put(context_slot::set_output_address, context::set_tensor_address)
        .put(context_slot::infer_shapes, context::infer_shapes)
        .put(context_slot::output_address, context::tensor_address)
        .put(context_slot::set_output_allocator, context::set_output_allocator)
        .put(context_slot::max_output_size, context::max_output_size)
        .put(context_slot::set_temporary_allocator, context::set_temporary_allocator)
        .put(context_slot::enqueue_v3, context::enqueue_v3)
        .put(context_slot::set_device_memory_v2, context::set_device_memory_v2);
    return table.slots;
}

} // namespace context

Face *engine::create_context(Engine *e, int32_t strategy) {
    if (fails("createExecutionContext")) {
        e->log(ERROR, "createExecutionContext: injected failure");
        return nullptr;
    }
    Context *c = new Context();
    c->engine = e;
    c->own_scratch = strategy != 2;
    if (c->own_scratch && !c->scratch.allocate(e->allocator, e->plan.scratch)) {
        e->log(ERROR, "IRuntime::createExecutionContext: Error Code 2: OutOfMemory (Requested size was " +
                          std::to_string(e->plan.scratch) + " bytes.)");
        delete c;
        return nullptr;
    }
    std::lock_guard<std::mutex> lock(e->lock);
    // The first context has profile 0.
    if (!exclusive_profiles(*e) || e->taken_profiles.insert(0).second) c->profile = 0;
    e->contexts++;
    count(&Counts::contexts, 1);
    return publish(c, context::table(), context::destroy);
}
