// A backend in C++17: three classes of yours, and one line that exports them.
//
//   struct MyBackend {                                       // once per server
//     static trtserver::About about();                       // facts, asked before anything is made
//     explicit MyBackend(const trtserver::BackendContext &);
//   };
//   struct MyModel {                                         // once per version of a model
//     MyModel(MyBackend &, const trtserver::ModelContext &);
//   };
//   struct MyInstance {                                      // once per instance, on a thread of its own
//     MyInstance(MyModel &, const trtserver::InstanceContext &);
//     void execute(trtserver::Batch &);                      // the work, one batch at a time
//   };
//   TRTSERVER_BACKEND(MyBackend, MyModel, MyInstance)
//
// Constructors open and destructors close: instances before their model, models before their backend, so that the
// references stay valid. What these members throw becomes the error of the load, or of the calls that have no answer
// yet: Error with its code, any std::exception with its what(). Destructors must not throw, as everywhere.
//
// Optional members:
//   std::optional<trtserver::Patch> MyBackend::complete(const trtserver::ModelContext &);
//       fills in what a configuration leaves out, on a loader thread; see ModelContext::autocomplete
//   std::string MyBackend::runtime() const;
//       the framework behind it, such as "TensorRT 10.13", once the backend is open
//   void MyInstance::cancel(trtserver::CallKey);
//       nobody waits for this call any more, which has not ended and may end meanwhile. From any thread, also during
//       execute; must not block. cancelled() of the call and its reply is true by then; a call that was cancelled
//       before execute got it is not told of
//
// Who owns what: contexts, calls and tensors are the host's, lent as each class says; a Response and a Reply are yours
// until sent or destroyed; what you `adopt` is the host's from then on. No other header than those of the C++ standard
// library is needed, and nothing is linked: c++ -std=c++17 -shared -fPIC -o libtrtserver_NAME.so …
#ifndef TRTSERVER_BACKEND_HPP
#define TRTSERVER_BACKEND_HPP

#include "cpp/base.hpp"
#include "cpp/context.hpp"
#include "cpp/answer.hpp"
#include "cpp/call.hpp"

#include <new>
#include <type_traits>

namespace trtserver {

// A platform that a backend serves, and the file or directory name of its models when the configuration names none
// (empty = models need no file).
struct Platform {
  std::string name;
  std::string default_file;
};

// Facts of a backend. The defaults are those of a backend that works on the CPU.
struct About {
  std::string name; // as `backend:` in a configuration says it
  std::string version;
  std::vector<Platform> platforms; // as `platform:` says them
  std::vector<std::string> features;
  std::uint32_t flags = 0;         // TRTS_ABOUT_…
  std::uint32_t max_in_flight = 1; // batches accepted but unanswered per instance
  std::uint32_t align = 0;         // that inputs need, a power of two up to 64; 0 = that of the element
  std::uint32_t stack_kib = 0;     // of an instance's thread; 0 = the host's default
};

// What `complete` adds to a configuration: protobuf text as in config.pbtxt, or JSON.
struct Patch {
  std::uint32_t format;
  std::string bytes;
  static Patch text(std::string bytes) { return {TRTS_PATCH_TEXT, std::move(bytes)}; }
  static Patch json(std::string bytes) { return {TRTS_PATCH_JSON, std::move(bytes)}; }
};

namespace detail {

// An About with the form that the host reads.
class AboutBox {
public:
  AboutBox(About about, std::string runtime) : about_(std::move(about)), runtime_(std::move(runtime)) {
    for (const Platform &platform : about_.platforms) {
      platforms_.push_back(str(platform.name));
      files_.push_back(str(platform.default_file));
    }
    for (const std::string &feature : about_.features) {
      features_.push_back(str(feature));
    }
    raw_.size = sizeof raw_;
    raw_.name = str(about_.name);
    raw_.version = str(about_.version);
    raw_.runtime = str(runtime_);
    raw_.platforms = platforms_.data();
    raw_.default_files = files_.data();
    raw_.features = features_.data();
    raw_.n_platforms = static_cast<std::uint32_t>(platforms_.size());
    raw_.n_features = static_cast<std::uint32_t>(features_.size());
    raw_.flags = about_.flags;
    raw_.max_in_flight = about_.max_in_flight;
    raw_.input_places = raw_.output_places = 1u << TRTS_PLACE_CPU;
    raw_.stack_kib = about_.stack_kib;
    raw_.align = about_.align;
  }
  AboutBox(const AboutBox &) = delete;
  AboutBox &operator=(const AboutBox &) = delete;

  const trts_about *raw() const noexcept { return &raw_; }

private:
  About about_;
  std::string runtime_;
  std::vector<trts_str> platforms_, files_, features_;
  trts_about raw_{};
};

template <class T, class = void> struct HasComplete : std::false_type {};
template <class T>
struct HasComplete<T, std::void_t<decltype(std::declval<T &>().complete(std::declval<const ModelContext &>()))>>
    : std::true_type {};
template <class T, class = void> struct HasRuntime : std::false_type {};
template <class T>
struct HasRuntime<T, std::void_t<decltype(std::declval<const T &>().runtime())>> : std::true_type {};
template <class T, class = void> struct HasCancel : std::false_type {};
template <class T>
struct HasCancel<T, std::void_t<decltype(std::declval<T &>().cancel(CallKey{}))>> : std::true_type {};

// The entries that the host calls. Nothing is thrown out of them.
template <class Backend, class Model, class Instance> class TRTSERVER_HIDDEN Export {
  static_assert(std::is_constructible_v<Backend, const BackendContext &>,
                "the backend needs a constructor that takes const trtserver::BackendContext &");
  static_assert(std::is_constructible_v<Model, Backend &, const ModelContext &>,
                "the model needs a constructor that takes the backend and const trtserver::ModelContext &");
  static_assert(std::is_constructible_v<Instance, Model &, const InstanceContext &>,
                "the instance needs a constructor that takes the model and const trtserver::InstanceContext &");

public:
  static const trts_plugin_table *main(const trts_host *with) noexcept {
    static constexpr trts_plugin_table entries = table();
    host = with;
    return with == nullptr ? nullptr : &entries;
  }

private:
  struct Opened {
    Backend backend;
    AboutBox about;
    explicit Opened(const BackendContext &context) : backend(context), about(Backend::about(), runtime(backend)) {}
  };

  static std::string runtime(const Backend &backend) {
    if constexpr (HasRuntime<Backend>::value) {
      return backend.runtime();
    } else {
      (void)backend;
      return std::string();
    }
  }

  static Opened *opened(trts_plugin *plugin) noexcept { return reinterpret_cast<Opened *>(plugin); }

  static const trts_about *describe(trts_plugin *plugin) noexcept {
    if (plugin != nullptr) {
      return opened(plugin)->about.raw();
    }
    const trts_about *facts = nullptr;
    host->error_free(guarded([&] {
      static const AboutBox box(Backend::about(), std::string());
      facts = box.raw();
    }));
    return facts;
  }

  static trts_error *plugin_open(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                                 std::uint32_t n_settings, trts_plugin **out) noexcept {
    return guarded([&] {
      const BackendContext context(scope, name, dir, settings, n_settings);
      *out = reinterpret_cast<trts_plugin *>(new Opened(context));
    });
  }
  static void plugin_close(trts_plugin *plugin) noexcept { delete opened(plugin); }

  static trts_error *model_complete(trts_plugin *plugin, const trts_model_desc *desc) noexcept {
    return guarded([&] {
      if constexpr (HasComplete<Backend>::value) {
        const std::optional<Patch> patch = opened(plugin)->backend.complete(ModelContext(desc));
        if (patch) {
          check(host->config_patch(desc->scope, patch->format, patch->bytes.data(), patch->bytes.size()));
        }
      } else {
        (void)plugin, (void)desc;
      }
    });
  }

  static trts_error *model_open(trts_plugin *plugin, const trts_model_desc *desc, trts_model **out) noexcept {
    return guarded([&] {
      *out = reinterpret_cast<trts_model *>(new Model(opened(plugin)->backend, ModelContext(desc)));
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
      // Until the batch is made, an error means that nothing was accepted; afterwards it travels in the replies.
      Batch batch(raw);
      batch.finish(guarded([&] { reinterpret_cast<Instance *>(instance)->execute(batch); }));
    });
  }

  static void cancel(trts_instance *instance, trts_reply *reply) noexcept {
    host->error_free(guarded([&] {
      if constexpr (HasCancel<Instance>::value) {
        reinterpret_cast<Instance *>(instance)->cancel(reinterpret_cast<CallKey>(reply));
      } else {
        (void)instance, (void)reply;
      }
    }));
  }

  static constexpr trts_plugin_table table() noexcept {
    trts_plugin_table table{};
    table.size = sizeof table;
    table.abi_major = TRTS_ABI_MAJOR;
    table.abi_minor = TRTS_ABI_MINOR;
    table.describe = describe;
    table.plugin_open = plugin_open;
    table.plugin_close = plugin_close;
    table.model_complete = HasComplete<Backend>::value ? model_complete : nullptr;
    table.model_open = model_open;
    table.model_close = model_close;
    table.instance_open = instance_open;
    table.execute = execute;
    table.cancel = HasCancel<Instance>::value ? cancel : nullptr;
    table.instance_close = instance_close;
    return table;
  }
};

} // namespace detail

} // namespace trtserver

// Exports the three classes of a backend. Once per library, outside any namespace.
#define TRTSERVER_BACKEND(Backend, Model, Instance)                                                                   \
  extern "C" TRTS_EXPORT const trts_plugin_table *trts_plugin_main(const trts_host *host) {                           \
    return ::trtserver::detail::Export<Backend, Model, Instance>::main(host);                                         \
  }                                                                                                                   \
  static_assert(true, "a semicolon may follow")

#endif
