// Fake TensorRT runtime for tests, a test double: libnvinfer.so.8, .10 or .11 by -DMAJOR. Executes
// plans that are text (plan.h) on the fake driver of tests/fakes/cuda.c. What passes on it is not a
// result of TensorRT.
//
// Objects have virtual tables of the slots in slots.h; any other slot ends the process, as does a
// use after deletion, two threads in one context, and memory that is not aligned.
//
// Environment: FAKE_NVINFER_FAIL and FAKE_NVINFER_REPORT (library.h); failures of
// createInferRuntime, deserializeCudaEngine, createExecutionContext, setInputShape, enqueue.
// -DWITHOUT_RUNTIME: the library lacks createInferRuntime_INTERNAL.
#include <map>

#include "context.h"
#include "engine.h"
#include "library.h"

// What the real library returns without a GPU: neither an object nor null.
static void *const NO_RUNTIME = reinterpret_cast<void *>(0x228);

struct Weights {
    int32_t type;
    const void *values;
    int64_t count;
};

struct Refitter : Object {
    Engine *engine;
    std::map<std::string, double> weights;
};

namespace refitter {

static bool set_named_weights(Refitter *r, const char *name, Weights weights) {
    const auto &stripped = r->engine->plan.stripped;
    if (!std::count(stripped.begin(), stripped.end(), name) || weights.type != 0 || weights.count != 1) {
        r->engine->log(ERROR, std::string("IRefitter::setNamedWeights: Error Code 3: wrong weights '") + name + "'");
        return false;
    }
    r->weights[name] = *static_cast<const float *>(weights.values);
    return true;
}

static int32_t list(const std::vector<std::string> &all, int32_t size, const char **names) {
    for (int32_t i = 0; i < size && i < int32_t(all.size()); i++) names[i] = all[size_t(i)].c_str();
    return int32_t(all.size());
}
static int32_t all_weights(Refitter *r, int32_t size, const char **names) { return list(r->engine->plan.stripped, size, names); }
static int32_t missing_weights(Refitter *r, int32_t size, const char **names) {
    static thread_local std::vector<std::string> missing;
    missing.clear();
    for (const std::string &name : r->engine->plan.stripped)
        if (!r->weights.count(name)) missing.push_back(name);
    return list(missing, size, names);
}

static bool refit(Refitter *r) {
    if (missing_weights(r, 0, nullptr)) return false;
    r->engine->refitted = r->weights;
    return true;
}

static void destroy(Object *) { count(&Counts::refitters, -1); }

static void **table() {
    static Table<REFITTER> table = Table<REFITTER>()
        .put(refitter_slot::refit, refitter::refit)
        .put(refitter_slot::set_named_weights, refitter::set_named_weights)
        .put(refitter_slot::missing_weights, refitter::missing_weights)
        .put(refitter_slot::all_weights, refitter::all_weights);
    return table.slots;
}

} // namespace refitter

struct Runtime : Object {
    Logger log;
    void *allocator = nullptr;
    bool host_code_allowed = false;
};

namespace runtime {

static Face *refuse(Runtime *r, const std::string &text) {
    r->log(ERROR, "IRuntime::deserializeCudaEngine: Error Code " + text);
    return nullptr;
}

static Face *deserialize(Runtime *r, const void *blob, uint64_t size) {
    if (fails("deserializeCudaEngine")) return refuse(r, "1: Internal Error (injected failure)");
    auto e = std::make_unique<Engine>();
    std::string problem = parse_plan(blob, size, VERSION, e->plan);
    if (!problem.empty()) return refuse(r, "1: Serialization (" + problem + ")");
    if (e->plan.host_code && !r->host_code_allowed)
        return refuse(r, "9: API Usage Error (the plan has host code, and setEngineHostCodeAllowed is not set)");
    if (e->plan.implicit_batch && MAJOR != 8) return refuse(r, "1: Serialization (implicit batch dimension)");
    for (const std::string &plugin : e->plan.plugins) {
        std::lock_guard<std::mutex> guard(counts().lock);
        if (!counts().plugins.count(plugin)) return refuse(r, "1: Serialization (cannot find plugin creator: " + plugin + ")");
    }
    int major = 0, minor = 0;
    if (driver().current(&e->device)) e->device = 0;
    driver().attribute(&major, 75, e->device);
    driver().attribute(&minor, 76, e->device);
    if (major != e->plan.compute_major || minor != e->plan.compute_minor) {
        std::ostringstream text;
        text << "6: The engine plan file is generated on an incompatible device, expecting compute " << major << "." << minor
             << " got compute " << e->plan.compute_major << "." << e->plan.compute_minor << ", please rebuild.";
        return refuse(r, text.str());
    }
    e->log = r->log;
    e->allocator = r->allocator;
    if (!e->weights.allocate(r->allocator, e->plan.weights))
        return refuse(r, "2: OutOfMemory (Requested size was " + std::to_string(e->plan.weights) + " bytes.)");
    r->log(INFO, "Loaded engine size: " + std::to_string(size) + " bytes");
    count(&Counts::engines, 1);
    return publish(e.release(), engine::table(), engine::destroy);
}

// The third parameter of TensorRT 8 is a factory of plugins, which is always null.
static Face *deserialize_8(Runtime *r, const void *blob, uint64_t size, void *factory) {
    if (factory) die("deserializeCudaEngine has a plugin factory");
    return deserialize(r, blob, size);
}

static void set_allocator(Runtime *r, void *allocator) { r->allocator = allocator; }
static bool set_max_threads(Runtime *, int32_t) { return true; }
static void set_host_code_allowed(Runtime *r, bool allowed) { r->host_code_allowed = allowed; }
static bool get_host_code_allowed(Runtime *r) { return r->host_code_allowed; }
static void destroy(Object *) { count(&Counts::runtimes, -1); }

static void **table() {
    static Table<RUNTIME> table = Table<RUNTIME>()
        .put(runtime_slot::set_allocator, runtime::set_allocator)
        .put(runtime_slot::set_max_threads, runtime::set_max_threads)
        .put(runtime_slot::set_host_code_allowed, runtime::set_host_code_allowed)
        .put(runtime_slot::get_host_code_allowed, runtime::get_host_code_allowed);
    if (MAJOR == 8) table.put(runtime_slot::deserialize, deserialize_8);
    else table.put(runtime_slot::deserialize, deserialize);
    return table.slots;
}

} // namespace runtime

#define EXPORT extern "C" __attribute__((visibility("default")))

#ifdef WITHOUT_RUNTIME
#define createInferRuntime_INTERNAL other_function
#endif
EXPORT void *createInferRuntime_INTERNAL(void *logger, int32_t version) {
    Logger log{logger};
    if (version / (VERSION[0] < 10 ? 1000 : 10000) != VERSION[0]) {
        log(ERROR, "createInferRuntime: Error Code 3: the caller has version " + std::to_string(version));
        return nullptr;
    }
    int found = 0, devices = 0;
    if (!driver().launch) die("the CUDA driver is not the fake one");
    if (driver().version(&found) || found < NEEDED_DRIVER || driver().init(0) || driver().device_count(&devices) || !devices ||
        fails("createInferRuntime")) {
        log(ERROR, found < NEEDED_DRIVER ? "CUDA initialization failure with error: 35" : "CUDA initialization failure with error: 100");
        return NO_RUNTIME;
    }
    log(INFO, "fake nvinfer, a test double");
    Runtime *r = new Runtime();
    r->log = log;
    count(&Counts::runtimes, 1);
    return publish(r, runtime::table(), runtime::destroy);
}

EXPORT void *createInferRefitter_INTERNAL(void *engine, void *, int32_t) {
    Refitter *r = new Refitter();
    r->engine = static_cast<Engine *>(static_cast<Face *>(engine)->object);
    count(&Counts::refitters, 1);
    return publish(r, refitter::table(), refitter::destroy);
}

EXPORT int32_t getInferLibVersion() { return VERSION_NUMBER; }
EXPORT int32_t getInferLibMajorVersion() { return VERSION[0]; }
EXPORT int32_t getInferLibMinorVersion() { return VERSION[1]; }
EXPORT int32_t getInferLibPatchVersion() { return VERSION[2]; }
EXPORT int32_t getInferLibBuildVersion() { return VERSION[3]; }

// In place of getPluginRegistry()->registerCreator().
EXPORT void fake_nvinfer_register(const char *plugin) {
    std::lock_guard<std::mutex> guard(counts().lock);
    counts().plugins.insert(plugin);
}
