// SPDX-License-Identifier: Apache-2.0 What constructors receive: views of the host's descriptors,
// and the scope for log, progress and metrics.
#ifndef TRTSERVER_CPP_CONTEXT_HPP
#define TRTSERVER_CPP_CONTEXT_HPP

#include "device.hpp"

#include <any>

namespace trtserver {

// A value that only grows. Owned by its scope: use it while that is valid, from any thread.
class Counter {
public:
  explicit Counter(trts_metric *raw) noexcept : raw_(raw) {}
  // Not below 0.
  void add(double value = 1) const noexcept { detail::host->error_free(detail::metrics->metric_put(raw_, value)); }
  double get() const noexcept { return detail::metrics->metric_get(raw_); }

private:
  trts_metric *raw_;
};

// A value that goes up and down. As Counter.
class Gauge {
public:
  explicit Gauge(trts_metric *raw) noexcept : raw_(raw) {}
  void set(double value) const noexcept { detail::host->error_free(detail::metrics->metric_put(raw_, value)); }
  double get() const noexcept { return detail::metrics->metric_get(raw_); }

private:
  trts_metric *raw_;
};

// A label of a metric: name and value.
using Label = std::pair<std::string, std::string>;

// The log, the load progress and the metrics of one backend, model or instance. Owned by the host;
// copy it freely and use it from any thread, but not after the object that received it is
// destroyed: join your threads before.
class Scope {
public:
  explicit Scope(trts_scope *raw) noexcept : raw_(raw), level_(detail::host->log_level(raw)) {}

  // Whether records of this level (TRTS_LEVEL_…) are written: one atomic load.
  bool enabled(std::uint32_t level) const noexcept {
    return level_ != nullptr && level <= __atomic_load_n(level_, __ATOMIC_RELAXED);
  }

  // Writes a record. The macros fill in file and line, and evaluate the text only when the level is
  // enabled.
  void log(std::uint32_t level, const char *file, int line, const std::string &text) const noexcept {
    if (enabled(level)) {
      detail::host->log(raw_, level, trts_text(file), static_cast<std::uint32_t>(line), detail::str(text));
    }
  }

  // Reports the progress of a load, 0 to 1000. Returns true when the load was abandoned: throw
  // soon.
  bool progress(const std::string &stage, std::uint32_t permille) const noexcept {
    return detail::host->progress(raw_, detail::str(stage), permille) != 0;
  }

  // The same name and labels twice is the same metric; another kind or other label names throw, and
  // so does a host without the metrics extension.
  Counter counter(const std::string &name, const std::string &help, const std::vector<Label> &labels = {}) const {
    return Counter(metric(TRTS_METRIC_COUNTER, name, help, labels));
  }
  Gauge gauge(const std::string &name, const std::string &help, const std::vector<Label> &labels = {}) const {
    return Gauge(metric(TRTS_METRIC_GAUGE, name, help, labels));
  }

  // Memory for the backend's own use: CPU memory, zeroed, or on hosts with devices pinned or GPU
  // memory with arbitrary contents. `align` is 0 or a power of two up to 64, for GPU memory up to
  // 256.
  HostMemory allocate(trts_memory memory, std::uint64_t bytes, std::uint64_t align = 0) const {
    trts_buf block{};
    detail::check(extension(detail::memory, TRTS_EXTENSION_MEMORY)
                      ->memory_alloc(raw_, memory, bytes, align, 0, nullptr, &block));
    return HostMemory(block);
  }
  // Reports how many bytes of a memory type and device the backend holds for this scope beside
  // memory of the host. Replaces the former report of that type and device; report 0 when they are
  // freed.
  void report_memory(trts_memory memory, std::uint64_t bytes) const {
    detail::check(extension(detail::memory, TRTS_EXTENSION_MEMORY)->memory_report(raw_, memory, bytes));
  }
  Event event(std::int32_t device_id) const {
    trts_event *made = nullptr;
    detail::check(extension(detail::device, TRTS_EXTENSION_DEVICE)->event_new(raw_, device_id, &made));
    return Event(made);
  }
  // Reports an error that the device may not survive, such as an illegal address. Returns whether
  // the host found the device lost; if not, only the caller is affected.
  bool device_fault(std::int32_t device_id, const std::string &reason) const {
    std::uint32_t verdict = TRTS_DEVICE_WORKS;
    detail::check(extension(detail::device, TRTS_EXTENSION_DEVICE)
                      ->device_fault(raw_, device_id, detail::str(reason), &verdict));
    return verdict == TRTS_DEVICE_LOST;
  }

private:
  template <class Table> static const Table *extension(const Table *table, const char *name) {
    if (table == nullptr) {
      throw Error::unsupported("this host has no extension '" + std::string(name) + "'");
    }
    return table;
  }

  trts_metric *metric(std::uint32_t kind, const std::string &name, const std::string &help,
                      const std::vector<Label> &labels) const {
    const trts_metrics_extension *const metrics = extension(detail::metrics, TRTS_EXTENSION_METRICS);
    std::vector<trts_param> params;
    for (const Label &label : labels) {
      trts_param param{};
      param.key = detail::str(label.first);
      param.kind = TRTS_PARAM_STRING;
      param.text = detail::str(label.second);
      params.push_back(param);
    }
    trts_metric *made = nullptr;
    detail::check(metrics->metric_new(raw_, kind, detail::str(name), detail::str(help), params.data(),
                                      static_cast<std::uint32_t>(params.size()), &made));
    return made;
  }

  trts_scope *raw_;
  const std::uint32_t *level_;
};

#define TRTSERVER_LOG(scope, level, text)                                                                             \
  do {                                                                                                                \
    const ::trtserver::Scope &trtserver_scope = (scope);                                                              \
    if (trtserver_scope.enabled(level)) {                                                                               \
      trtserver_scope.log(level, __FILE__, __LINE__, text);                                                           \
    }                                                                                                                 \
  } while (false)
#define TRTSERVER_ERROR(scope, text) TRTSERVER_LOG(scope, TRTS_LEVEL_ERROR, text)
#define TRTSERVER_WARNING(scope, text) TRTSERVER_LOG(scope, TRTS_LEVEL_WARNING, text)
#define TRTSERVER_INFO(scope, text) TRTSERVER_LOG(scope, TRTS_LEVEL_INFO, text)
#define TRTSERVER_VERBOSE(scope, text) TRTSERVER_LOG(scope, TRTS_LEVEL_VERBOSE, text)

// For the constructor of a backend. Its texts and settings are borrowed for the call: copy what you
// store.
class BackendContext {
public:
  BackendContext(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings, std::uint32_t n) noexcept
      : scope_(scope), name_(detail::view(name)), dir_(detail::view(dir)), settings_(settings, n) {}

  // The name under which models ask for this backend.
  std::string_view name() const noexcept { return name_; }
  // Directory of the plugin file.
  std::string_view dir() const noexcept { return dir_; }
  // From plugin.toml and `--backend-config=NAME,key=value`.
  Params settings() const noexcept { return settings_; }
  // Valid as long as the backend.
  const Scope &log() const noexcept { return scope_; }

private:
  Scope scope_;
  std::string_view name_, dir_;
  Params settings_;
};

// A tensor as the configuration declares it. Borrowed from its ModelContext.
class TensorDecl {
public:
  explicit TensorDecl(const trts_tensor_decl *raw) noexcept : raw_(raw) {}

  std::string_view name() const noexcept { return detail::view(raw_->name); }
  Dtype dtype() const noexcept { return static_cast<Dtype>(raw_->dtype); }
  // Shape for clients, without the batch dimension; -1 = variable.
  Span<const std::int64_t> dims() const noexcept { return {raw_->dims, raw_->rank}; }
  // Shape for the model: differs where the configuration reshapes.
  Span<const std::int64_t> model_dims() const noexcept { return {raw_->model_dims, raw_->model_rank}; }
  // Requests may omit this input.
  bool optional() const noexcept { return (raw_->flags & TRTS_TENSOR_OPTIONAL) != 0; }

private:
  const trts_tensor_decl *raw_;
};

// One version of a model. The host's descriptor behind it is valid until the model is closed: copy
// the context freely and store it in the model (in `autocomplete` it is borrowed for the call).
class ModelContext {
public:
  explicit ModelContext(const trts_model_desc *raw) noexcept : raw_(raw), scope_(raw->scope) {}

  std::string name() const { return std::string(detail::view(raw_->name)); }
  std::int64_t version() const noexcept { return raw_->version; }
  // The model's directory, its version's, and the file or directory inside that.
  std::string_view dir() const noexcept { return detail::view(raw_->dir); }
  std::string_view version_dir() const noexcept { return detail::view(raw_->version_dir); }
  std::string_view file() const noexcept { return detail::view(raw_->file); }
  // The effective configuration as JSON with all defaults, and as a serialized ModelConfig.
  std::string_view config_json() const noexcept { return detail::view(raw_->config_json); }
  Span<const char> config_pb() const noexcept {
    return {static_cast<const char *>(raw_->config_pb.p), static_cast<std::size_t>(raw_->config_pb.n)};
  }
  // Server-wide settings of this backend.
  Params settings() const noexcept { return {raw_->settings, raw_->n_settings}; }
  // The model's `parameters { key: … }` of its configuration.
  Params parameters() const noexcept { return {raw_->params, raw_->n_params}; }
  std::size_t inputs() const noexcept { return raw_->n_inputs; }
  TensorDecl input(std::size_t i) const noexcept { return TensorDecl(&raw_->inputs[i]); }
  std::size_t outputs() const noexcept { return raw_->n_outputs; }
  TensorDecl output(std::size_t i) const noexcept { return TensorDecl(&raw_->outputs[i]); }
  // 0 = the model does not batch.
  std::int32_t max_batch_size() const noexcept { return raw_->max_batch_size; }
  // For the constructor of the model: what autocomplete handed over for this version in
  // Completion::state. Null if it did not, if it is of another type, if the configuration was not
  // completed, or if that happened in another process (isolated models). Borrowed for the call.
  template <class T> const T *state() const noexcept { return std::any_cast<T>(static_cast<const std::any *>(raw_->state)); }
  // The backend may add what the configuration omits; see `autocomplete` in backend.hpp.
  bool autocomplete() const noexcept { return raw_->autocomplete != 0; }
  // Instances that the host will open, over all instance groups.
  std::uint32_t instances() const noexcept { return raw_->n_instances; }
  // Threads that a framework may use for each instance, at least 1.
  std::uint32_t threads() const noexcept { return raw_->threads == 0 ? 1 : raw_->threads; }
  // Valid as long as the model.
  const Scope &log() const noexcept { return scope_; }
  const trts_model_desc *raw() const noexcept { return raw_; }

private:
  const trts_model_desc *raw_;
  Scope scope_;
};

// A file or directory of a ModelProbe.
struct DirEntry {
  std::string_view name;
  bool is_dir; // or a link to one
};

// A version directory, and the platform of which a model is looked for. Borrowed for the call of
// `model_probe`.
class ModelProbe {
public:
  explicit ModelProbe(const trts_probe_desc *raw) noexcept : raw_(raw) {}

  // Of the model.
  std::string_view name() const noexcept { return detail::view(raw_->name); }
  std::int64_t version() const noexcept { return raw_->version; }
  std::string_view version_dir() const noexcept { return detail::view(raw_->version_dir); }
  // One of the platforms of BackendInfo, and its default file.
  std::string_view platform() const noexcept { return detail::view(raw_->platform); }
  std::string_view default_file() const noexcept { return detail::view(raw_->default_file); }
  // What the directory contains.
  std::size_t size() const noexcept { return raw_->n_entries; }
  DirEntry operator[](std::size_t i) const noexcept {
    return {detail::view(raw_->entries[i].name), raw_->entries[i].is_dir != 0};
  }

private:
  const trts_probe_desc *raw_;
};

// One instance. As ModelContext: valid until the instance is closed.
class InstanceContext {
public:
  explicit InstanceContext(const trts_instance_desc *raw) noexcept : raw_(raw), scope_(raw->scope) {}

  std::string_view name() const noexcept { return detail::view(raw_->name); }
  // TRTS_KIND_…
  std::uint32_t kind() const noexcept { return raw_->kind; }
  // Number among the model's instances, from 0.
  std::uint32_t ordinal() const noexcept { return raw_->ordinal; }
  // GPU ordinal; -1 on the CPU.
  std::int32_t device_id() const noexcept { return raw_->device_id; }
  // Streams of the host for this instance (CUstream): compute, copies to the device, copies from
  // it; null without a GPU.
  void *stream() const noexcept { return raw_->cu_stream; }
  void *copy_in() const noexcept { return raw_->cu_copy_in; }
  void *copy_out() const noexcept { return raw_->cu_copy_out; }
  std::uint32_t threads() const noexcept { return raw_->threads == 0 ? 1 : raw_->threads; }
  // Largest batch in rows, at least 1.
  std::uint32_t max_rows() const noexcept { return raw_->max_rows == 0 ? 1 : raw_->max_rows; }
  // Valid as long as the instance.
  const Scope &log() const noexcept { return scope_; }
  // Everything else, such as CUDA handles.
  const trts_instance_desc *raw() const noexcept { return raw_; }

private:
  const trts_instance_desc *raw_;
  Scope scope_;
};

} // namespace trtserver

#endif
