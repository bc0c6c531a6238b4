/* SPDX-License-Identifier: Apache-2.0 */
/* Extension tables: optional functions of a host or a backend, asked for by name and version.
 *
 * A table of one name grows only at its end; each addition raises its version. get_extension(name, v)
 * returns a table of version v or later, or null. An incompatible change takes a new name. Names that
 * begin with "trts." are reserved for these headers; prefix your own with something else. A backend that
 * cannot run without an extension lists it in trts_backend_info.required_extensions. */
#ifndef TRTSERVER_EXTENSIONS_H
#define TRTSERVER_EXTENSIONS_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- offered by hosts ---- */

/* Name of the extension for metrics on the server's page: trts_metrics_extension. */
#define TRTS_EXTENSION_METRICS "trts.metrics"
/* Its newest version. */
#define TRTS_EXTENSION_METRICS_VERSION 2u

/* A metric. Owned by its scope, which frees it at the latest. */
typedef struct trts_metric trts_metric;

/* Kinds of metric. */
enum { TRTS_METRIC_COUNTER = 0, TRTS_METRIC_GAUGE = 1, TRTS_METRIC_HISTOGRAM = 2 };

/* Metrics on the server's metrics page. */
typedef struct trts_metrics_extension {
  uint64_t size; /* sizeof, as the host was built */
  /* Creates a metric of kind TRTS_METRIC_… with labels of kind STRING. Equal names are one family, and with
   * equal label values one metric; another kind or other label names for a family are an error while a scope
   * uses it, and so is a name that begins like those of the server (nv_inference_, nv_gpu_, nv_energy_,
   * trtserver_). */
  trts_error *(*metric_new)(trts_scope *scope, uint32_t kind, trts_str name, trts_str help,
                            const trts_param *labels, uint32_t n_labels, trts_metric **out);
  /* Adds to a counter (a value not below 0), sets a gauge, adds an observation to a histogram. */
  trts_error *(*metric_put)(trts_metric *metric, double value);
  /* The value; of a histogram the sum of its observations. */
  double (*metric_get)(const trts_metric *metric);
  /* Gives up a handle. With the last one of a scope the metric leaves the page, unless another scope has it.
   * Optional: a scope frees its metrics when it closes. */
  void (*metric_free)(trts_metric *metric);
  /* Since version 2. Adds to a counter (a value not below 0) or a gauge (any value). Of several threads, or of
   * several scopes with the same metric, no addition is lost. */
  trts_error *(*metric_add)(trts_metric *metric, double value);
} trts_metrics_extension;

/* Name of the extension for histograms: trts_histograms_extension. */
#define TRTS_EXTENSION_HISTOGRAMS "trts.histograms"
/* Its newest version. */
#define TRTS_EXTENSION_HISTOGRAMS_VERSION 1u

/* Histograms on the server's metrics page. Beside this one, the entries of trts_metrics_extension take them. */
typedef struct trts_histograms_extension {
  uint64_t size;
  /* Creates a histogram, as metric_new does; bounds are the upper bounds of its buckets, ascending,
   * without the infinite one. All histograms of a family have the same bounds. */
  trts_error *(*histogram_new)(trts_scope *scope, trts_str name, trts_str help, const trts_param *labels,
                               uint32_t n_labels, const double *bounds, uint32_t n_bounds, trts_metric **out);
} trts_histograms_extension;

/* Name of the extension for batches that are executed in parts: trts_batch_parts_extension. */
#define TRTS_EXTENSION_BATCH_PARTS "trts.batch_parts"
/* Its newest version. */
#define TRTS_EXTENSION_BATCH_PARTS_VERSION 1u

/* For backends that execute fewer requests at once than the host put into a batch, by a rule of their own. */
typedef struct trts_batch_parts_extension {
  uint64_t size;
  /* The calling thread, in execute, executes the n requests from position first on as a part of the batch, which
   * the statistics count as an execution: its time begins now, and the times of the batch, which become 0, are
   * those of the part. Called before the first response to one of them. Parts do not overlap. gather, the scatter
   * entries and batch_finish concern the whole batch. */
  trts_error *(*begin)(trts_batch *batch, uint32_t first, uint32_t n);
} trts_batch_parts_extension;

/* Name of the extension for the process of an isolated model: trts_process_extension. */
#define TRTS_EXTENSION_PROCESS "trts.process"
/* Its newest version. */
#define TRTS_EXTENSION_PROCESS_VERSION 1u

/* The process of an isolated model. */
typedef struct trts_process_extension {
  uint64_t size;
  /* The instance of this scope cannot go on, for this reason, and only another process helps. This one takes no
   * further batches. It ends when no other instance executes, and what it has not taken goes to the next one;
   * requests that the instance has not answered fail. NULL: the process ends at once. UNSUPPORTED in the server's own
   * process. On any thread; returns at once. */
  trts_error *(*restart)(trts_scope *instance, trts_str reason);
} trts_process_extension;

/* Name of the extension for traces of requests: trts_trace_extension. */
#define TRTS_EXTENSION_TRACE "trts.trace"
/* Its newest version. */
#define TRTS_EXTENSION_TRACE_VERSION 1u

/* A W3C trace context. The state is valid as long as the responder. */
typedef struct trts_trace_context {
  /* Of all spans of the trace. */
  uint8_t trace_id[16];
  /* The span of the model. */
  uint8_t span_id[8];
  /* Not 0: the span is recorded. */
  uint32_t sampled;
  uint32_t pad;
  /* tracestate, as the client sent it. */
  trts_str state;
} trts_trace_context;

/* Traces of requests. The flag TRTS_REQUEST_TRACED says which requests have one. */
typedef struct trts_trace_extension {
  uint64_t size;
  /* Adds a point in time to the trace of a request: it is in the trace file and in the span of the model under
   * this name. Before the final response. No effect on a request without a trace; names are cut, and too many of
   * them dropped. On any thread; returns at once. */
  trts_error *(*activity)(trts_responder *responder, trts_str name, uint64_t at_ns);
  /* Writes the context of a request, for what the backend does elsewhere on its behalf. TRTS_CODE_UNSUPPORTED
   * for a request without a trace. */
  trts_error *(*context)(trts_responder *responder, trts_trace_context *out);
} trts_trace_extension;

/* Name of the extension for memory of the host: trts_memory_extension. */
#define TRTS_EXTENSION_MEMORY "trts.memory"
/* Its newest version. */
#define TRTS_EXTENSION_MEMORY_VERSION 1u

/* Memory of the host for the backend's own use, and reports of memory that the backend allocates by itself. */
typedef struct trts_memory_extension {
  uint64_t size;
  /* Allocates memory, owned by the caller until memory_free or the close of the scope. May block. CPU memory
   * is offered by every host and zeroed; pinned and GPU memory by hosts with trts.device, with arbitrary
   * contents. Alignment: 0 or a power of two, up to 64 (GPU memory: 256). Flags are 0. `stream` is null, or
   * for GPU memory the CUDA stream on which it is first used: the memory may belong to earlier work of that
   * stream. TRTS_CODE_EXHAUSTED = not now, TRTS_CODE_UNSUPPORTED = never. */
  trts_error *(*memory_alloc)(trts_scope *scope, trts_memory memory, uint64_t bytes, uint64_t align,
                              uint32_t flags, void *stream, trts_buf *out);
  /* Frees the memory of a trts_buf.memory_handle once the event is reached; takes ownership of the event.
   * Null = nothing uses the memory any more. */
  void (*memory_free)(uint64_t memory_handle, trts_event *after);
  /* Reports how many bytes of a memory type and device the backend holds for this scope beside memory of the
   * host, such as a framework's own allocations. Replaces the scope's former report of that type and device.
   * Reports of a scope end with it; bytes that are not 0 by then are logged. */
  trts_error *(*memory_report)(trts_scope *scope, trts_memory memory, uint64_t bytes);
} trts_memory_extension;

/* Name of the extension for GPUs: trts_device_extension. */
#define TRTS_EXTENSION_DEVICE "trts.device"
/* Its newest version. */
#define TRTS_EXTENSION_DEVICE_VERSION 1u

/* Results of device_fault. */
enum { TRTS_DEVICE_WORKS = 0, TRTS_DEVICE_LOST = 1 };

/* GPUs: events, copies, faults. Offered by hosts that have found a CUDA driver and a device.
 *
 * Streams are CUDA driver handles (CUstream) of the primary context of a device: those of a
 * trts_instance_desc, or the backend's own. An event is a point in the work of a stream. Rules for memory of
 * the host on a GPU instance:
 *
 * Ready: work submitted to the instance's cu_stream may use inputs, gathered blocks and outputs at once. Work
 * on any other stream waits for trts_buf.ready first, which is null when there is nothing to wait for.
 * TRTS_BACKEND_OWN_STREAM: the host submits nothing to cu_stream, so every use waits for `ready`.
 *
 * After: a function that takes an event as `after` reads outputs, or reuses inputs and memory, once that event
 * is reached. Null = once all work is done that was submitted to cu_stream before the call;
 * TRTS_BACKEND_OWN_STREAM, and on a CPU instance: at once. */
typedef struct trts_device_extension {
  uint64_t size;
  /* Creates an event of a device, owned by the caller until event_destroy or a function that takes ownership.
   * Until it is recorded it counts as reached. */
  trts_error *(*event_new)(trts_scope *scope, int32_t device_id, trts_event **out);
  /* Moves the event to the end of what was submitted to the stream so far. */
  trts_error *(*event_record)(trts_event *event, void *stream);
  /* Makes later work of the stream, of any device, wait for the event. Does not block the calling thread. */
  trts_error *(*event_wait)(const trts_event *event, void *stream);
  /* Writes whether the event is reached (not 0). Does not block. */
  trts_error *(*event_query)(const trts_event *event, uint32_t *reached);
  /* Takes ownership of the event, reached or not; null is allowed. */
  void (*event_destroy)(trts_event *event);
  /* Copies bytes between any two memories, in the order of the stream. Both must stay valid until the copy is
   * done. Null stream: returns when the copy is done. */
  trts_error *(*copy)(void *to, trts_memory to_memory, const void *from, trts_memory from_memory, uint64_t bytes,
                      void *stream);
  /* Reports an error of a device that its context may not survive, such as an illegal address; `reason` is
   * for the log. The host asks the driver: with TRTS_DEVICE_LOST no instance on the device executes any
   * more, and their requests fail with TRTS_CODE_DEVICE_LOST; with TRTS_DEVICE_WORKS only the caller is
   * affected, and fails its requests by itself. */
  trts_error *(*device_fault)(trts_scope *scope, int32_t device_id, trts_str reason, uint32_t *verdict);
} trts_device_extension;

/* ---- offered by backends ---- */

/* Name of the extension for completion of configurations: trts_autocomplete_extension. */
#define TRTS_EXTENSION_AUTOCOMPLETE "trts.autocomplete"
/* Its newest version. */
#define TRTS_EXTENSION_AUTOCOMPLETE_VERSION 1u

/* Completion of model configurations from model files. */
typedef struct trts_autocomplete_extension {
  uint64_t size; /* sizeof, as the backend was built */
  /* Adds what the configuration omits, with the host's config_patch. On a loader thread; may be slow.
   *
   * What it stores in *state (NULL before the call), the host passes to model_open of the same version, as
   * trts_model_desc.state; so a model that was read here need not be read again there. The host owns the
   * state after success. */
  trts_error *(*autocomplete)(trts_backend *backend, const trts_model_desc *desc, void **state);
  /* Takes ownership of a state: called once for each that is not NULL, after model_open has returned, or
   * when the model is not opened; before backend_close. NULL = autocomplete stores none. */
  void (*state_free)(void *state);
} trts_autocomplete_extension;

/* Name of the extension for notification of cancelled requests: trts_cancel_extension. */
#define TRTS_EXTENSION_CANCEL "trts.cancel"
/* Its newest version. */
#define TRTS_EXTENSION_CANCEL_VERSION 1u

/* Notification of cancelled requests, for backends that block where they cannot poll `cancelled`. */
typedef struct trts_cancel_extension {
  uint64_t size;
  /* Notifies an instance that a request was cancelled which execute has received and which was not finished
   * when the host checked; it may finish meanwhile, so the responder serves for comparison only. The host
   * sets trts_request.cancelled first. Called on a thread of the host, also during execute; must not block.
   * At most once per request. A request cancelled before execute received it is not notified. The
   * instance stays open during the call. */
  void (*cancel)(trts_instance *instance, trts_responder *responder);
} trts_cancel_extension;

/* Name of the extension for prepared batch sizes: trts_batch_sizes_extension. */
#define TRTS_EXTENSION_BATCH_SIZES "trts.batch_sizes"
/* Its newest version. */
#define TRTS_EXTENSION_BATCH_SIZES_VERSION 1u

/* A number of rows that an instance is prepared for. */
typedef struct trts_batch_size {
  uint32_t rows; /* the number */
  uint32_t pad;
  uint64_t run_ns; /* how long a run with that many rows takes, in nanoseconds; 0 = unknown */
} trts_batch_size;

/* Sizes of batches that an instance is prepared for, where other sizes cost as much as the next larger one,
 * because the backend pads. The host forms batches with regard to them. */
typedef struct trts_batch_sizes_extension {
  uint64_t size;
  /* Returns the sizes of an instance, from 1 to max_rows of its descriptor and ascending, and writes their
   * number. 0 = there are none: every number of rows costs what it costs. Called once after instance_open, on
   * the thread of the instance; the list is valid until instance_close. The host may give the instance batches
   * of any size all the same. */
  const trts_batch_size *(*batch_sizes)(trts_instance *instance, uint32_t *n);
} trts_batch_sizes_extension;

/* Name of the extension for recognition of model files: trts_model_probe_extension. */
#define TRTS_EXTENSION_MODEL_PROBE "trts.model_probe"
/* Its newest version. */
#define TRTS_EXTENSION_MODEL_PROBE_VERSION 1u

/* A file or directory of a version directory. */
typedef struct trts_dir_entry {
  trts_str name;   /* without directories */
  uint32_t is_dir; /* not 0: a directory, or a link to one */
  uint32_t pad;
} trts_dir_entry;

/* A version directory in which a model is looked for. Owned by the host; valid during the call of model_probe. */
typedef struct trts_probe_desc {
  uint64_t size;
  trts_str name; /* of the model */
  int64_t version;      /* number of the version */
  trts_str version_dir; /* path of the directory */
  trts_str platform; /* one of the platforms of the backend */
  trts_str default_file; /* of that platform */
  const trts_dir_entry *entries; /* what the directory contains */
  uint32_t n_entries;
  uint32_t pad;
  uint64_t reserved[4];
} trts_probe_desc;

/* Result of model_probe: the default file of the platform decides. */
enum { TRTS_NO_ENTRY = 2147483647 };

/* Recognition of model files, for configurations that leave platform or model file to be detected. */
typedef struct trts_model_probe_extension {
  uint64_t size;
  /* Checks whether a version directory holds a model of a platform. *found is TRTS_NO_ENTRY before the call;
   * on success it is the index of the file or directory of the model in desc->entries, or still
   * TRTS_NO_ENTRY. An error says why there is none; its text goes on after "no model of platform P: ".
   *
   * The backend need not be open. Looks at names, and at most at the beginnings of files: it must not load
   * the framework. On any thread, several at once. */
  trts_error *(*model_probe)(const trts_probe_desc *desc, uint32_t *found);
} trts_model_probe_extension;

#ifdef __cplusplus
}
#endif
#endif
