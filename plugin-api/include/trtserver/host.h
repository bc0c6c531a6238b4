/* SPDX-License-Identifier: Apache-2.0 */
/* The host table: functions that the host offers to backends.
 *
 * Unless an entry says otherwise it may be called from any thread, returns null on success or an error
 * that the caller must free with error_free, and borrows its arguments for the duration of the call. No
 * entry throws, and no exception may pass through one. All entries are present. What only some hosts
 * offer is in extension tables: see extensions.h. */
#ifndef TRTSERVER_HOST_H
#define TRTSERVER_HOST_H

#include "request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called exactly once, on any thread, when the host no longer needs adopted memory. Null = no call. */
typedef void (*trts_release_fn)(void *ctx);

/* Bits of trts_host_table.flags. ISOLATED: this process runs one model of this backend and nothing else;
 * a supervisor restarts it when it ends. */
enum { TRTS_HOST_ISOLATED = 1 };

/* Formats of config_patch. PROTOBUF is a ModelConfig with the fields to add, TEXT as in config.pbtxt. Of COMPLETED_JSON these
 * fields replace those of the configuration: max_batch_size, input, output, model_transaction_policy; a scheduler is taken if the
 * configuration has none. Other fields are ignored. */
enum { TRTS_PATCH_PROTOBUF = 0, TRTS_PATCH_JSON = 1, TRTS_PATCH_TEXT = 2, TRTS_PATCH_COMPLETED_JSON = 3 };

/* Modes of gather. ROWS: the rows of all requests, one after another. */
enum { TRTS_GATHER_ROWS = 0 };

/* Flags of response_send. FINAL: no further response follows for this request. NO_WAIT: fails with
 * TRTS_CODE_EXHAUSTED instead of waiting for a client that does not read; the response stays owned by the
 * caller. */
enum { TRTS_SEND_FINAL = 1, TRTS_SEND_NO_WAIT = 2 };

/* Owned by the host; immutable and valid for the life of the process. */
typedef struct trts_host_table {
  uint64_t size; /* sizeof, as the host was built */
  uint32_t abi_major; /* TRTS_ABI_MAJOR, as the host was built */
  uint32_t abi_minor; /* TRTS_ABI_MINOR, as the host was built */
  trts_str name;      /* of the host, for logs */
  trts_str version;   /* of the host, for logs */
  uint32_t flags; /* TRTS_HOST_… */
  uint32_t n_extensions;
  const trts_extension *extensions; /* that get_extension returns */

  /* Returns an extension table of at least this version, or null when the host has no such extension or
   * only an older version. The table is owned by the host and valid for the life of the process. Look
   * tables up when the library is loaded or a backend is opened, not per request. */
  const void *(*get_extension)(trts_str name, uint32_t version);

  /* -- errors -- */
  /* Creates an error of TRTS_CODE_… and TRTS_ERROR_…. The text is copied; the caller owns the error. */
  trts_error *(*error_new)(uint32_t code, uint32_t flags, trts_str text);
  /* Returns TRTS_CODE_… of an error. */
  uint32_t (*error_code)(const trts_error *error);
  /* The text is owned by the error. */
  trts_str (*error_text)(const trts_error *error);
  /* Takes ownership of the error; null is allowed. */
  void (*error_free)(trts_error *error);

  /* -- log and time -- */
  /* Returns the address of the scope's log level: load it atomically; valid for the life of the process. */
  const uint32_t *(*log_level)(const trts_scope *scope);
  /* Writes a record of TRTS_LEVEL_… to the server's log, unless the scope's level leaves it out. `file` and `line` are
   * the place in the source. The texts are copied. */
  void (*log)(const trts_scope *scope, uint32_t level, trts_str file, uint32_t line, trts_str text);
  /* CLOCK_MONOTONIC nanoseconds. */
  uint64_t (*now_ns)(void);

  /* -- loading -- */
  /* In autocomplete only: adds fields to the model configuration, as TRTS_PATCH_…. Copied. */
  trts_error *(*config_patch)(trts_scope *scope, uint32_t format, const void *p, uint64_t n);
  /* Reports the progress of a load, 0 to 1000. Returns not 0 when the load was abandoned. */
  uint32_t (*progress)(trts_scope *scope, trts_str stage, uint32_t permille);

  /* -- inputs -- */
  /* Returns an input of all requests as one block: their rows one after another along dimension 0, strings
   * likewise. `input` is the position in the requests' inputs, which all requests of a batch have in the
   * same order; mode is TRTS_GATHER_…. Only in execute and before a request of the batch is released. The
   * block is read-only, owned by the host and valid until the last request is released. Nothing is copied for
   * a single request or when the parts are adjacent in memory; a copy is 64-byte aligned. TRTS_CODE_INVALID
   * when shapes differ beyond dimension 0, or for several requests of a model without batch dimension. Inputs flagged
   * TRTS_TENSOR_RAGGED may differ: their block is flat. So may those flagged TRTS_TENSOR_BATCH, along dimension 0.
   *
   * The block is in the preferred memory: CPU, or GPU of the instance's device; TRTS_CODE_UNSUPPORTED for
   * others. GPU memory is ready as trts.device says, and also for later work of `stream` unless that is
   * null. */
  trts_error *(*gather)(const trts_batch *batch, uint32_t input, trts_memory preferred_memory, uint32_t mode,
                        void *stream, trts_buf *out);
  /* Takes ownership of the request handle and the event: the request's view and inputs are invalid once
   * the event is reached (null = now). The responder stays usable as long as it would be otherwise. */
  void (*request_release)(trts_request_handle *request, trts_event *after);

  /* -- responses -- */
  /* Detaches a responder, so that it stays valid after execute until responder_release. May be called
   * several times; the instance stays open until each call is matched by a responder_release. */
  void (*responder_detach)(trts_responder *responder);
  /* Undoes one responder_detach. The last one frees an unsent response of the responder. */
  void (*responder_release)(trts_responder *responder);
  /* Creates a response, owned by the caller until response_send or response_free. One response of a
   * responder may exist at a time, and one thread may use it at a time. */
  trts_error *(*response_new)(trts_responder *responder, trts_response **out);
  /* Takes ownership of the response and discards it; null is allowed. */
  void (*response_free)(trts_response *response);
  /* Allocates an output in memory of the host, or in the memory in which the client wants it, which the client can
   * change meanwhile; what is written there is sent as it is. 64-byte aligned,
   * uninitialized, writable until the response is sent or freed. An output that was not requested: success,
   * null and 0 bytes. The host may choose other memory than the preferred one: read out->memory. GPU memory of
   * the instance's device is given where it is preferred, and ready as trts.device says. */
  trts_error *(*output_alloc)(trts_response *response, trts_str name, uint32_t dtype, uint32_t rank,
                              const int64_t *shape, uint64_t bytes, trts_memory preferred_memory,
                              trts_buf *out);
  /* Adds an output in memory of the backend, without a copy. The host takes ownership and calls
   * release(ctx) exactly once on any thread: also after a failure, for an output that was not requested,
   * and possibly after the model or the backend was closed. Parts in GPU memory are read after the event of
   * response_send. */
  trts_error *(*output_adopt)(trts_response *response, trts_str name, uint32_t dtype, uint32_t rank,
                              const int64_t *shape, const trts_buf *parts, uint32_t n_parts,
                              trts_release_fn release, void *ctx);
  /* Adds a parameter to the response. Copied. */
  trts_error *(*response_param)(trts_response *response, const trts_param *param);
  /* Takes ownership of the response and the event, also on failure. The error stays owned by the caller
   * and is sent instead of the outputs. Flags TRTS_SEND_…. Never runs backend code on this thread. Outputs in
   * GPU memory are read after the event, see trts.device; the response then leaves later, from another thread,
   * and a failure of the device meanwhile is sent instead.
   *
   * In a decoupled model it blocks while the client has not read enough of the earlier responses, see
   * responder_backlog: not longer than until the request is cancelled, then with TRTS_CODE_CANCELLED unless
   * the response is final, or until the client has read nothing for a time that the server's operator sets,
   * then with TRTS_CODE_EXHAUSTED. */
  trts_error *(*response_send)(trts_response *response, uint32_t flags, const trts_error *error,
                               trts_event *after);
  /* Finishes a request without a further response: with an error, which stays owned by the caller, or with
   * null, which ends a stream. */
  trts_error *(*responder_finish)(trts_responder *responder, const trts_error *error);
  /* Returns what was sent to the stream of the request and not read by its client; zeros for a request that
   * did not arrive on a stream. */
  trts_error *(*responder_backlog)(trts_responder *responder, trts_backlog *out);

  /* -- a batch as a whole -- */
  /* Allocates one block of the host for an output or state of all requests. The shape begins with the
   * batch's rows. That of an output that `batch_output` names holds the elements of all requests in any shape: each
   * request gets as many as its source input has. Writable until batch_finish, which sends each request its rows by reference. 64-byte
   * aligned, and zeroed unless it is memory of the client; memory as for output_alloc. When no request asked
   * for the output: success, null and 0 bytes. Only in execute; once
   * per output and batch; not while a response of one of its requests exists. */
  trts_error *(*scatter_alloc)(const trts_batch *batch, trts_str name, uint32_t dtype, uint32_t rank,
                               const int64_t *shape, uint64_t bytes, trts_memory preferred_memory,
                               trts_buf *out);
  /* The same with memory of the backend, without a copy. The host takes ownership and calls release(ctx)
   * exactly once on any thread after the last request's rows were sent, also after a failure and for an
   * output that was not requested. */
  trts_error *(*scatter_adopt)(const trts_batch *batch, trts_str name, uint32_t dtype, uint32_t rank,
                               const int64_t *shape, const trts_buf *buf, trts_release_fn release,
                               void *ctx);
  /* Finishes what is still open of a batch, except detached requests; only in execute. With an error, which
   * stays owned by the caller, each open request fails with it. With null each gets its rows of the
   * scattered outputs as its final response, or an error when nothing was scattered, its handle was
   * released or a response of it exists. Releases the request handles. Takes ownership of the event, after
   * which GPU memory is read and reused. */
  trts_error *(*batch_finish)(const trts_batch *batch, const trts_error *error, trts_event *after);
} trts_host_table;

#ifdef __cplusplus
}
#endif
#endif
