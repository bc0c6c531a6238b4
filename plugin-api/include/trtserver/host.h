/* The host's table: everything a plugin may ask of the host.
 *
 * Unless said otherwise an entry may be called from any thread, returns null on success or an error
 * that the plugin frees, and borrows what it is given for the duration of the call only. Entries
 * marked "optional" are null on hosts that do not offer them. No entry unwinds, and none may be
 * unwound through. */
#ifndef TRTSERVER_HOST_H
#define TRTSERVER_HOST_H

#include "call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called exactly once, on any thread, when the host no longer needs donated memory. Null = nobody needs
 * to know. */
typedef void (*trts_release_fn)(void *ctx);
/* Called when a nested call is over. */
typedef void (*trts_infer_done_fn)(void *ctx, trts_infer *infer);

/* Bits for response_send: no further response follows for this reply. */
enum { TRTS_SEND_LAST = 1 };
/* Modes for gather: the rows of all calls, one after another. */
enum { TRTS_GATHER_ROWS = 0 };
/* Formats for config_patch; PROTOBUF is a ModelConfig of what is to be added, TEXT as in config.pbtxt. */
enum { TRTS_PATCH_PROTOBUF = 0, TRTS_PATCH_JSON = 1, TRTS_PATCH_TEXT = 2 };
/* Kinds for metric_new. */
enum { TRTS_METRIC_COUNTER = 0, TRTS_METRIC_GAUGE = 1 };
/* Bits of a host's flags. ISOLATED: its process runs this plugin's model and nothing else, and a server that
 * outlives it starts another one should it end. */
enum { TRTS_HOST_ISOLATED = 1 };

/* The host's; valid for ever, never changes. */
typedef struct trts_host {
  uint64_t size; /* sizeof, as the host knows it */
  uint32_t abi_major;
  uint32_t abi_minor;
  trts_str name; /* of the host, for logs */
  trts_str version;

  /* -- errors -- */
  /* Makes an error of TRTS_CODE_… and TRTS_ERROR_…; the text is copied, the caller owns the error. */
  trts_error *(*error_new)(uint32_t code, uint32_t flags, trts_str text);
  uint32_t (*error_code)(const trts_error *error);
  /* Lives as long as the error. */
  trts_str (*error_text)(const trts_error *error);
  /* Takes the error; null is allowed. */
  void (*error_free)(trts_error *error);

  /* -- log and time -- */
  /* Address of the highest level wanted: read it atomically; lives for ever. */
  const uint32_t *(*log_level)(const trts_scope *scope);
  void (*log)(const trts_scope *scope, uint32_t level, trts_str file, uint32_t line, trts_str text);
  /* CLOCK_MONOTONIC nanoseconds. */
  uint64_t (*now_ns)(void);

  /* -- model files and loading -- */
  /* Inside model_complete: what the plugin found out, as TRTS_PATCH_…; copied. */
  trts_error *(*config_patch)(trts_scope *scope, uint32_t format, const void *p, uint64_t n);
  /* Optional. The mapping is the plugin's until file_unmap. */
  trts_error *(*file_map)(trts_scope *scope, trts_str path, trts_buf *out);
  /* Optional. */
  void (*file_unmap)(uint64_t lease);
  /* How far a load has come, 0 to 1000; not 0 back = nobody waits for it any more. */
  uint32_t (*progress)(trts_scope *scope, trts_str stage, uint32_t permille);

  /* -- memory -- */
  /* Memory of the host for the plugin's use, freed by mem_free or with the scope. May block. Null
   * stream = ready at once. TRTS_CODE_EXHAUSTED = not now, TRTS_CODE_UNSUPPORTED = never. */
  trts_error *(*mem_alloc)(trts_scope *scope, trts_place place, uint64_t bytes, uint64_t align,
                           uint32_t flags, void *stream, trts_buf *out);
  /* Takes the event. */
  void (*mem_free)(uint64_t lease, trts_event *after);
  /* Optional. */
  trts_error *(*mem_export)(uint64_t lease, uint32_t how, void *out);
  /* Optional. */
  uint64_t (*mem_budget)(trts_scope *scope, trts_place place);
  /* Optional: memory that the library took by itself. */
  void (*mem_report)(trts_scope *scope, trts_place place, uint64_t bytes);

  /* -- points in streams, optional all -- */
  /* The event is the plugin's until given away or freed. */
  trts_error *(*event_record)(trts_scope *scope, void *stream, trts_event **out);
  /* Makes the stream wait, never this thread. */
  trts_error *(*event_wait)(trts_event *event, void *stream);
  uint32_t (*event_done)(trts_event *event);
  void (*event_free)(trts_event *event);
  /* Between any two places; a null stream blocks until done. */
  trts_error *(*copy)(const trts_buf *dst, const trts_buf *src, void *stream);
  uint32_t (*device_fault)(int32_t device, int32_t code);

  /* -- inputs -- */
  /* Optional. An input of all calls as one block along dimension 0, rows in the order of the calls,
   * strings one after another. input = position in the calls' inputs, the same in all of them; mode
   * TRTS_GATHER_…; stream null. Only inside execute and before a release. Read-only, the host's until the
   * last release; no copy for a single call or for parts that touch, else 64-byte aligned. TRTS_CODE_INVALID
   * when shapes differ beyond dimension 0, or for several calls without a batch dimension. */
  trts_error *(*gather)(const trts_batch *batch, uint32_t input, trts_place place, uint32_t mode,
                        void *stream, trts_buf *out);
  /* Gives a request back: its view and inputs are dead once the event is reached (null = now). */
  void (*request_release)(trts_request *request, trts_event *after);
  /* Optional. */
  trts_error *(*request_requeue)(trts_request *request);

  /* -- answers -- */
  /* Keeps a reply past execute; each needs its release, or the instance waits for the answer for ever. */
  void (*reply_retain)(trts_reply *reply);
  void (*reply_release)(trts_reply *reply);
  /* Begins a response, the plugin's until sent or dropped; finish it before the next of the same reply.
   * One thread at a time. It ends unsent with the last hold of its reply. */
  trts_error *(*response_new)(trts_reply *reply, trts_response **out);
  /* Takes the response. */
  void (*response_drop)(trts_response *response);
  /* Optional. A hint where an output had best be made. */
  trts_error *(*output_query)(trts_reply *reply, trts_str name, uint64_t bytes, trts_place *out);
  /* Memory of the host for an output: what is written there goes on the wire. 64-byte aligned, valid
   * until the response is sent or dropped. For an output nobody asked for: null, 0 bytes, success. */
  trts_error *(*output_alloc)(trts_response *response, trts_str name, uint32_t dtype, uint32_t rank,
                              const int64_t *shape, uint64_t bytes, trts_place wish, trts_buf *out);
  /* Donates the plugin's memory. release(ctx) comes exactly once on any thread, also after a failure
   * and for an output nobody asked for; it may come after the model or the plugin was closed. */
  trts_error *(*output_adopt)(trts_response *response, trts_str name, uint32_t dtype, uint32_t rank,
                              const int64_t *shape, const trts_buf *parts, uint32_t n_parts,
                              trts_release_fn release, void *ctx);
  trts_error *(*response_param)(trts_response *response, const trts_param *param);
  /* Takes response and event, whatever comes back; the error stays the sender's and goes to the
   * caller instead of the outputs. Flags TRTS_SEND_…. Runs no user code on this thread. */
  trts_error *(*response_send)(trts_response *response, uint32_t flags, const trts_error *error,
                               trts_event *after);
  /* Ends a reply without another response: with an error (which stays the sender's), or null = end of
   * a stream. */
  trts_error *(*reply_end)(trts_reply *reply, const trts_error *error);
  /* Optional. One block of the host for an output or state of all calls; shape begins with the batch's
   * rows. The plugin's to write until batch_send, which gives each call its rows by reference. 64-byte
   * aligned, zeroed. Null, 0 bytes and success when nobody wants it. Only inside execute; each name once
   * for a batch; not while a response of one of its calls is being built. */
  trts_error *(*scatter_alloc)(const trts_batch *batch, trts_str name, uint32_t dtype, uint32_t rank,
                               const int64_t *shape, uint64_t bytes, trts_place wish, trts_buf *out);
  /* Optional. The same, donated: release(ctx) comes exactly once on any thread, after the last call's
   * rows were used, also after a failure and for an output nobody wants. */
  trts_error *(*scatter_adopt)(const trts_batch *batch, trts_str name, uint32_t dtype, uint32_t rank,
                               const int64_t *shape, const trts_buf *buf, trts_release_fn release,
                               void *ctx);
  /* Only while the batch's execute runs. Ends whatever of it is still open and not retained: replies
   * get the error; without one, their rows of what was scattered as a last response, or, where nothing was
   * (or the request is released, or a response begun), an error that names the omission. Requests are
   * released. Takes the event; the error stays the sender's. */
  trts_error *(*batch_send)(const trts_batch *batch, const trts_error *error, trts_event *after);

  /* -- sequence state, optional -- */
  trts_error *(*state_alloc)(trts_reply *reply, trts_str name, uint32_t dtype, uint32_t rank,
                             const int64_t *shape, uint64_t bytes, trts_place wish, trts_buf *out);
  trts_error *(*state_commit)(trts_reply *reply, trts_str name);

  /* -- reports and traces, optional -- */
  trts_error *(*report_request)(trts_request *request, uint32_t ok, const uint64_t *times);
  trts_error *(*report_batch)(const trts_batch *batch, const uint64_t *times);
  trts_error *(*report_response)(trts_reply *reply, uint32_t index, const uint64_t *times);
  void (*trace_mark)(trts_reply *reply, trts_str name, uint64_t at_ns);
  trts_str (*trace_context)(trts_reply *reply);

  /* -- metrics -- */
  /* A metric of the scope, TRTS_METRIC_…, with labels of kind STRING. The same name twice is the same
   * family, with the same label values the same metric; another kind or other label names for it are an error. */
  trts_error *(*metric_new)(trts_scope *scope, uint32_t kind, trts_str name, trts_str help,
                            const trts_param *labels, uint32_t n_labels, trts_metric **out);
  /* Adds to a counter (not below 0), sets a gauge. */
  trts_error *(*metric_put)(trts_metric *metric, double value);
  double (*metric_get)(const trts_metric *metric);
  /* Takes the metric. Not needed: metrics go with their scope. */
  void (*metric_free)(trts_metric *metric);

  /* -- nested calls, optional -- */
  trts_error *(*infer_new)(trts_reply *parent, trts_str model, int64_t version, trts_infer **out);
  trts_error *(*infer_input)(trts_infer *infer, trts_str name, uint32_t dtype, uint32_t rank,
                             const int64_t *shape, const trts_buf *parts, uint32_t n_parts);
  trts_error *(*infer_want)(trts_infer *infer, trts_str name);
  trts_error *(*infer_param)(trts_infer *infer, const trts_param *param);
  trts_error *(*infer_start)(trts_infer *infer, trts_infer_done_fn done, void *ctx);
  void (*infer_free)(trts_infer *infer);
  uint32_t (*model_query)(trts_scope *scope, trts_str model, int64_t version);
  trts_error *(*model_control)(trts_scope *scope, trts_str model, uint32_t load);

  /* -- since 1.1; a plugin that says it was built for 1.1 is run by no host without -- */
  uint32_t flags; /* TRTS_HOST_… */
  uint32_t pad;
} trts_host;

#ifdef __cplusplus
}
#endif
#endif
