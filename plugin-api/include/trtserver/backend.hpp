// SPDX-License-Identifier: Apache-2.0
// A backend in C++17: three classes of yours, and one line that exports them.
//
//   struct MyBackend {                                       // once per server
//     static trtserver::BackendInfo info();                  // what the library says of itself before it is opened
//     explicit MyBackend(const trtserver::BackendContext &);
//   };
//   struct MyModel {                                         // once per version of a model
//     MyModel(MyBackend &, const trtserver::ModelContext &);
//   };
//   struct MyInstance {                                      // once per instance, on a thread of its own
//     MyInstance(MyModel &, const trtserver::InstanceContext &);
//     void execute(trtserver::Batch &);                      // one batch at a time
//   };
//   TRTSERVER_BACKEND(MyBackend, MyModel, MyInstance)
//
// Constructors open and destructors close: instances before their model, models before their
// backend, so that the references stay valid. An exception from these members becomes the error of
// the load, or of the requests that are not finished: Error with its code, any std::exception with
// its what(). Destructors must not throw.
//
// Optional members:
//   std::optional<trtserver::Patch> MyBackend::autocomplete(const trtserver::ModelContext &);
//       adds what a configuration omits, on a loader thread; see ModelContext::autocomplete. Or returns a
//       trtserver::Completion, which also hands a value to the constructor of MyModel
//   static std::optional<std::string_view> MyBackend::model_probe(const trtserver::ModelProbe &);
//       looks for a model in a version directory, if the configuration leaves platform or file to be detected. Returns the
//       name of an entry; nothing if the default file of the platform decides. An exception says why there is none: its text
//       goes on after "no model of platform P: ". The backend need not be open; must not load the framework
//   std::string MyBackend::runtime() const;
//       the framework and its version, such as "TensorRT 10.13", once the backend is open
//   void MyInstance::cancel(trtserver::RequestKey);
//       a request was cancelled that execute has received and that is not finished. From any thread, also during execute;
//       must not block. cancelled() of the request and its responder is true by then; a request cancelled before execute
//       received it is not notified
//
// Ownership: contexts, requests and tensors are owned by the host and borrowed as each class says;
// a Response and a Responder are owned by the backend until sent or destroyed; adopted memory is
// owned by the host. No other header than those of the C++ standard library is needed, and nothing
// is linked: c++ -std=c++17 -shared -fPIC -o libtrtserver_NAME.so …
#ifndef TRTSERVER_BACKEND_HPP
#define TRTSERVER_BACKEND_HPP

#if __cplusplus < 201703L
#error "trtserver/backend.hpp needs C++17: compile with -std=c++17"
#endif

#include "cpp/base.hpp"
#include "cpp/device.hpp"
#include "cpp/context.hpp"
#include "cpp/response.hpp"
#include "cpp/request.hpp"

#include <any>
#include <new>
#include <type_traits>

namespace trtserver {

// A platform that a backend serves, and the file or directory name of its models when the
// configuration names none (empty = models need no file).
struct Platform {
  std::string name;
  std::string default_file;
};

// Name and version of an extension; see extensions.h.
struct Extension {
  std::string name;
  std::uint32_t version = 1;
};

// What a backend says of itself. The defaults are those of a backend that works on the CPU.
struct BackendInfo {
  std::string name; // as in `backend:` of a model configuration
  std::string version;
  std::vector<Platform> platforms;            // as in `platform:` of a model configuration
  std::vector<Extension> required_extensions; // of the host, which refuses to load the backend without them
  std::uint32_t flags = 0;                    // TRTS_BACKEND_…
  std::uint32_t max_in_flight = 1;            // batches accepted but unanswered per instance
  std::uint32_t gpu_max_in_flight = 0;        // the same for instances on GPUs; 0 = max_in_flight
  std::uint32_t decoupled_max_in_flight = 0;  // the same for instances of decoupled models; 0 = as other models
  std::uint32_t align = 0;     // required of inputs, a power of two up to 64; 0 = that of the element type
  std::uint32_t stack_kib = 0; // stack of an instance's thread; 0 = the host's default
  std::uint32_t instance_kinds = 0; // that it opens: bit set, 1u << TRTS_KIND_GPU and so on; 0 = CPU and MODEL
  std::uint32_t input_memory_types = 1u << TRTS_MEMORY_CPU; // bit sets: 1u << TRTS_MEMORY_GPU and so on
  std::uint32_t output_memory_types = 1u << TRTS_MEMORY_CPU;
};

// What `autocomplete` adds to a configuration: protobuf text as in config.pbtxt, or JSON.
struct Patch {
  std::uint32_t format;
  std::string bytes;
  static Patch text(std::string bytes) { return {TRTS_PATCH_TEXT, std::move(bytes)}; }
  static Patch json(std::string bytes) { return {TRTS_PATCH_JSON, std::move(bytes)}; }
};

// A patch, if there is something to add, and a value for the constructor of the same version's
// model, which gets it from ModelContext::state: a model that was read for the completion need not
// be read again. The value is destroyed after the constructor, or when the model is not opened; a
// std::shared_ptr may be copied there.
struct Completion {
  std::optional<Patch> patch;
  std::any state;
};

namespace detail {

inline Completion completion(std::optional<Patch> patch) { return {std::move(patch), {}}; }
inline Completion completion(Completion made) { return made; }

template <class T, class = void> struct HasAutocomplete : std::false_type {};
template <class T>
struct HasAutocomplete<T, std::void_t<decltype(std::declval<T &>().autocomplete(std::declval<const ModelContext &>()))>>
    : std::true_type {};
template <class T, class = void> struct HasModelProbe : std::false_type {};
template <class T>
struct HasModelProbe<T, std::void_t<decltype(T::model_probe(std::declval<const ModelProbe &>()))>> : std::true_type {};
template <class T, class = void> struct HasRuntime : std::false_type {};
template <class T>
struct HasRuntime<T, std::void_t<decltype(std::declval<const T &>().runtime())>> : std::true_type {};
template <class T, class = void> struct HasCancel : std::false_type {};
template <class T>
struct HasCancel<T, std::void_t<decltype(std::declval<T &>().cancel(RequestKey{}))>> : std::true_type {};

// A BackendInfo with the form that the host reads.
class OwnedBackendInfo {
public:
  OwnedBackendInfo(BackendInfo info, std::vector<Extension> offered, std::string runtime)
      : info_(std::move(info)), offered_(std::move(offered)), runtime_(std::move(runtime)) {
    for (const Platform &platform : info_.platforms) {
      platforms_.push_back(str(platform.name));
      files_.push_back(str(platform.default_file));
    }
    for (const Extension &extension : offered_) {
      extensions_.push_back({str(extension.name), extension.version, 0});
    }
    for (const Extension &extension : info_.required_extensions) {
      required_.push_back({str(extension.name), extension.version, 0});
    }
    raw_.size = sizeof raw_;
    raw_.name = str(info_.name);
    raw_.version = str(info_.version);
    raw_.runtime = str(runtime_);
    raw_.platforms = platforms_.data();
    raw_.default_files = files_.data();
    raw_.n_platforms = static_cast<std::uint32_t>(platforms_.size());
    raw_.extensions = extensions_.data();
    raw_.n_extensions = static_cast<std::uint32_t>(extensions_.size());
    raw_.required_extensions = required_.data();
    raw_.n_required_extensions = static_cast<std::uint32_t>(required_.size());
    raw_.flags = info_.flags;
    raw_.max_in_flight = info_.max_in_flight;
    raw_.gpu_max_in_flight = info_.gpu_max_in_flight;
    raw_.decoupled_max_in_flight = info_.decoupled_max_in_flight;
    raw_.instance_kinds = info_.instance_kinds;
    raw_.input_memory_types = info_.input_memory_types;
    raw_.output_memory_types = info_.output_memory_types;
    raw_.stack_kib = info_.stack_kib;
    raw_.align = info_.align;
  }
  OwnedBackendInfo(const OwnedBackendInfo &) = delete;
  OwnedBackendInfo &operator=(const OwnedBackendInfo &) = delete;

  const trts_backend_info *raw() const noexcept { return &raw_; }

private:
  BackendInfo info_;
  std::vector<Extension> offered_;
  std::string runtime_;
  std::vector<trts_str> platforms_, files_;
  std::vector<trts_extension> extensions_, required_;
  trts_backend_info raw_{};
};

// The entries that the host calls. No exception leaves them.
template <class Backend, class Model, class Instance> class TRTSERVER_HIDDEN Export {
  static_assert(std::is_constructible_v<Backend, const BackendContext &>,
                "the backend needs a constructor that takes const trtserver::BackendContext &");
  static_assert(std::is_constructible_v<Model, Backend &, const ModelContext &>,
                "the model needs a constructor that takes the backend and const trtserver::ModelContext &");
  static_assert(std::is_constructible_v<Instance, Model &, const InstanceContext &>,
                "the instance needs a constructor that takes the model and const trtserver::InstanceContext &");

public:
  static const trts_backend_table *main(const trts_host_table *with) noexcept {
    static constexpr trts_backend_table entries = table();
    if (with == nullptr) {
      return nullptr;
    }
    host = with;
    // A host of another major version reports the mismatch from the table; its own table may
    // differ.
    if (with->abi_major == TRTS_ABI_MAJOR) {
      metrics = static_cast<const trts_metrics_extension *>(
          with->get_extension(trts_text(TRTS_EXTENSION_METRICS), TRTS_EXTENSION_METRICS_VERSION));
      memory = static_cast<const trts_memory_extension *>(
          with->get_extension(trts_text(TRTS_EXTENSION_MEMORY), TRTS_EXTENSION_MEMORY_VERSION));
      device = static_cast<const trts_device_extension *>(
          with->get_extension(trts_text(TRTS_EXTENSION_DEVICE), TRTS_EXTENSION_DEVICE_VERSION));
    }
    return &entries;
  }

private:
  struct Open {
    Backend backend;
    OwnedBackendInfo info;
    explicit Open(const BackendContext &context)
        : backend(context), info(Backend::info(), offered(), runtime(backend)) {}
  };

  static std::string runtime(const Backend &backend) {
    if constexpr (HasRuntime<Backend>::value) {
      return backend.runtime();
    } else {
      (void)backend;
      return std::string();
    }
  }

  static std::vector<Extension> offered() {
    std::vector<Extension> all;
    if constexpr (HasAutocomplete<Backend>::value) {
      all.push_back({TRTS_EXTENSION_AUTOCOMPLETE, TRTS_EXTENSION_AUTOCOMPLETE_VERSION});
    }
    if constexpr (HasCancel<Instance>::value) {
      all.push_back({TRTS_EXTENSION_CANCEL, TRTS_EXTENSION_CANCEL_VERSION});
    }
    if constexpr (HasModelProbe<Backend>::value) {
      all.push_back({TRTS_EXTENSION_MODEL_PROBE, TRTS_EXTENSION_MODEL_PROBE_VERSION});
    }
    return all;
  }

  static Open *open(trts_backend *backend) noexcept { return reinterpret_cast<Open *>(backend); }

  static const trts_backend_info *backend_info(trts_backend *backend) noexcept {
    if (backend != nullptr) {
      return open(backend)->info.raw();
    }
    const trts_backend_info *raw = nullptr;
    host->error_free(guarded([&] {
      static const OwnedBackendInfo info(Backend::info(), offered(), std::string());
      raw = info.raw();
    }));
    return raw;
  }

  static trts_error *backend_open(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                                  std::uint32_t n_settings, trts_backend **out) noexcept {
    return guarded([&] {
      const BackendContext context(scope, name, dir, settings, n_settings);
      *out = reinterpret_cast<trts_backend *>(new Open(context));
    });
  }
  static void backend_close(trts_backend *backend) noexcept { delete open(backend); }

  static trts_error *autocomplete(trts_backend *backend, const trts_model_desc *desc, void **state) noexcept {
    return guarded([&] {
      if constexpr (HasAutocomplete<Backend>::value) {
        Completion made = completion(open(backend)->backend.autocomplete(ModelContext(desc)));
        if (made.patch) {
          check(host->config_patch(desc->scope, made.patch->format, made.patch->bytes.data(), made.patch->bytes.size()));
        }
        if (made.state.has_value()) {
          *state = new std::any(std::move(made.state));
        }
      } else {
        (void)backend, (void)desc, (void)state;
      }
    });
  }
  static void state_free(void *state) noexcept { delete static_cast<std::any *>(state); }

  static trts_error *model_probe(const trts_probe_desc *desc, std::uint32_t *found) noexcept {
    return guarded([&] {
      if constexpr (HasModelProbe<Backend>::value) {
        const ModelProbe probe(desc);
        const std::optional<std::string_view> name = Backend::model_probe(probe);
        for (std::uint32_t i = 0; name && i < desc->n_entries; i++) {
          if (probe[i].name == *name) {
            *found = i;
            return;
          }
        }
        if (name) {
          throw Error::internal(std::string(*name) + " is not in " + std::string(probe.version_dir()));
        }
      } else {
        (void)desc, (void)found;
      }
    });
  }

  static trts_error *model_open(trts_backend *backend, const trts_model_desc *desc, trts_model **out) noexcept {
    return guarded([&] {
      *out = reinterpret_cast<trts_model *>(new Model(open(backend)->backend, ModelContext(desc)));
    });
  }
  static void model_close(trts_model *model) noexcept { delete reinterpret_cast<Model *>(model); }

  static trts_error *instance_open(trts_model *model, const trts_instance_desc *desc, trts_instance **out) noexcept {
    return guarded([&] {
      auto *const instance = new Instance(*reinterpret_cast<Model *>(model), InstanceContext(desc));
      *out = reinterpret_cast<trts_instance *>(instance);
    });
  }
  static void instance_close(trts_instance *instance) noexcept { delete reinterpret_cast<Instance *>(instance); }

  static trts_error *execute(trts_instance *instance, trts_batch *raw) noexcept {
    return guarded([&] {
      // Until the batch is constructed, an error means that nothing was accepted; afterwards it is
      // sent as a response.
      Batch batch(raw);
      batch.finish(guarded([&] { reinterpret_cast<Instance *>(instance)->execute(batch); }));
    });
  }

  static void cancel(trts_instance *instance, trts_responder *responder) noexcept {
    host->error_free(guarded([&] {
      if constexpr (HasCancel<Instance>::value) {
        reinterpret_cast<Instance *>(instance)->cancel(reinterpret_cast<RequestKey>(responder));
      } else {
        (void)instance, (void)responder;
      }
    }));
  }

  static const void *get_extension(trts_str name, std::uint32_t version) noexcept {
    static constexpr trts_autocomplete_extension autocompletes = {sizeof autocompletes, autocomplete, state_free};
    static constexpr trts_cancel_extension cancels = {sizeof cancels, cancel};
    static constexpr trts_model_probe_extension probes = {sizeof probes, model_probe};
    if (HasAutocomplete<Backend>::value && view(name) == TRTS_EXTENSION_AUTOCOMPLETE &&
        version <= TRTS_EXTENSION_AUTOCOMPLETE_VERSION) {
      return &autocompletes;
    }
    if (HasCancel<Instance>::value && view(name) == TRTS_EXTENSION_CANCEL && version <= TRTS_EXTENSION_CANCEL_VERSION) {
      return &cancels;
    }
    if (HasModelProbe<Backend>::value && view(name) == TRTS_EXTENSION_MODEL_PROBE &&
        version <= TRTS_EXTENSION_MODEL_PROBE_VERSION) {
      return &probes;
    }
    return nullptr;
  }

  static constexpr trts_backend_table table() noexcept {
    trts_backend_table table{};
    table.size = sizeof table;
    table.abi_major = TRTS_ABI_MAJOR;
    table.abi_minor = TRTS_ABI_MINOR;
    table.backend_info = backend_info;
    table.backend_open = backend_open;
    table.backend_close = backend_close;
    table.model_open = model_open;
    table.model_close = model_close;
    table.instance_open = instance_open;
    table.instance_close = instance_close;
    table.execute = execute;
    table.get_extension = get_extension;
    return table;
  }
};

} // namespace detail

} // namespace trtserver

// Exports the three classes of a backend. Once per library, outside any namespace.
#define TRTSERVER_BACKEND(Backend, Model, Instance)                                                                   \
  extern "C" TRTS_EXPORT const trts_backend_table *trts_backend_main(const trts_host_table *host) {                   \
    return ::trtserver::detail::Export<Backend, Model, Instance>::main(host);                                         \
  }                                                                                                                   \
  static_assert(true, "a semicolon may follow")

#endif
