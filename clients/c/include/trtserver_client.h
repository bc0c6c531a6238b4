/* C interface of libtrtserver_client: a client of inference servers that speak the TRTIS protocol ("v1") or the Open
 * Inference Protocol as Triton extends it ("v2"), over HTTP or gRPC. C11; also usable from C++11 and from ctypes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Errors. A function that can fail returns `trtc_error *`: NULL is success, anything else is owned by the caller and
 * released with trtc_error_free. After an error, outputs of the function are unchanged.
 *
 * Handles. Each object is a handle, released by the `_free` function of its type, in any order: a context or a result
 * stays valid after the client that made it was released. A handle is not an address: NULL, a released handle and the
 * handle of another type are refused with an error (TRTC_KIND_ARGUMENT). Releasing NULL or a released handle does nothing.
 *
 * Memory. Strings that are passed in are UTF-8, end with NUL and are copied, as are the arrays and structures that describe
 * a request. Tensor data is not copied: it stays valid and unchanged until the call returns, or, for an asynchronous call,
 * until its callback is called; TRTC_COPY_INPUTS lifts that. What a function returns by pointer belongs to the handle it
 * was taken from and is valid until that handle is released.
 *
 * Threads. All functions may be called from any thread. Calls on one client run concurrently. A streaming v1 context sends
 * its requests in the order of its calls; inputs and options of a context are changed by one thread at a time.
 * Callbacks are called by a thread of the library, for one context, stream or client one at a time; they may call any
 * function of this header, blocking ones too.
 *
 * Deadlines. `deadline_us` is the time in microseconds that the call may take: 0 is the deadline of the settings;
 * TRTC_NO_DEADLINE is none. When it passes, the call fails with TRTC_KIND_DEADLINE and the request is cancelled. Settings with
 * deadline 0 have that of the environment variable TRTSERVER_CLIENT_DEADLINE (seconds, 0 for none), without it 60 s, and 600 s for
 * calls that load or unload a model.
 *
 * Structures that begin with `struct_size` may grow: set it to sizeof the structure and zero what you do not use.
 *
 * Arrays. `x_count` is the number of elements of the array before it. Sizes are bytes. Shapes are dimensions in row-major
 * order, the slowest first; -1 is variable. */
#ifndef TRTSERVER_CLIENT_H
#define TRTSERVER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As `deadline_us`: the call waits as long as it takes. */
#define TRTC_NO_DEADLINE UINT64_MAX

/* Version of the library, "0.2.0". Static. */
const char *trtc_version(void);

/* Number of handles that exist. A program that released all it got reads 0: for tests of leaks. */
size_t trtc_live_handles(void);

/* The FileDescriptorSet of the protobuf messages of both protocols, serialized. Static. */
const void *trtc_descriptors(size_t *size);

/* ---- Errors ---- */

/* Why a call failed. */
typedef struct trtc_error trtc_error;

/* `RequestStatusCode` of v1. Errors of v2 servers and of the client itself have the nearest of these. */
enum {
  TRTC_CODE_INVALID = 0,
  TRTC_CODE_SUCCESS = 1,
  TRTC_CODE_UNKNOWN = 2,
  TRTC_CODE_INTERNAL = 3,
  TRTC_CODE_NOT_FOUND = 4,
  TRTC_CODE_INVALID_ARG = 5,
  TRTC_CODE_UNAVAILABLE = 6,
  TRTC_CODE_UNSUPPORTED = 7,
  TRTC_CODE_ALREADY_EXISTS = 8
};

/* What failed. */
enum {
  /* The server refused or failed the request: message, server id and request id are the server's. */
  TRTC_KIND_SERVER = 0,
  /* No connection, or it was lost. */
  TRTC_KIND_CONNECTION = 1,
  TRTC_KIND_DEADLINE = 2,
  /* The call was cancelled, or its client, context or stream was released. */
  TRTC_KIND_CANCELLED = 3,
  /* The server's response is not what the protocol prescribes. */
  TRTC_KIND_RESPONSE = 4,
  /* An argument is invalid; nothing was sent. */
  TRTC_KIND_ARGUMENT = 5,
  /* A file cannot be read or is not a picture. */
  TRTC_KIND_FILE = 6,
  /* A defect of the library. */
  TRTC_KIND_INTERNAL = 7
};

/* What an error says. Texts are UTF-8, end with NUL and are valid until the error is released. */
typedef struct trtc_error_info {
  /* TRTC_CODE_… */
  int32_t code;
  /* TRTC_KIND_… */
  int32_t kind;
  /* HTTP status or gRPC status code of the response; 0 if there was none. */
  int32_t status;
  /* Of v1 servers; 0 if there is none. */
  uint64_t request_id;
  /* For people: what failed, and why. */
  const char *message;
  /* Of v1 servers; empty if there is none. */
  const char *server_id;
  /* What was asked of whom: method and URL; empty for errors of arguments. */
  const char *asked;
  /* Id that the inference request had, for errors on streams; otherwise empty. */
  const char *id;
} trtc_error_info;

/* All of the error. `info` is zeroed for an invalid handle. */
void trtc_error_get(const trtc_error *error, trtc_error_info *info);
/* The code of trtc_error_info; TRTC_CODE_SUCCESS for NULL. */
int32_t trtc_error_code(const trtc_error *error);
/* The message of trtc_error_info; "" for NULL. */
const char *trtc_error_message(const trtc_error *error);
/* Name of a code: "INVALID_ARG". Static; "UNKNOWN" for other numbers. */
const char *trtc_code_name(int32_t code);
/* Releases an error. */
void trtc_error_free(trtc_error *error);

/* ---- Settings of a connection ---- */

/* Protocols of a connection. */
enum { TRTC_HTTP = 0, TRTC_GRPC = 1 };
/* Compression of requests, and of responses as far as the server agrees. */
enum { TRTC_COMPRESSION_NONE = 0, TRTC_COMPRESSION_DEFLATE = 1, TRTC_COMPRESSION_GZIP = 2 };

/* An HTTP header, or an entry of gRPC metadata. */
typedef struct trtc_header {
  /* Capitals and small letters are the same. */
  const char *name;
  /* ASCII. */
  const char *value;
} trtc_header;

/* How a client connects. Copied by the functions that take it. */
typedef struct trtc_settings {
  size_t struct_size;
  /* "localhost:8000", "http://host:8000", "https://host:8000/prefix", "grpcs://host:8001", "unix:/run/server". */
  const char *url;
  /* TRTC_HTTP or TRTC_GRPC. */
  int32_t protocol;
  /* TRTC_COMPRESSION_…, of v2 over HTTP, and of gRPC. */
  int32_t compression;
  /* Sent with every request. */
  const trtc_header *headers;
  size_t header_count;
  /* Of calls that give none. */
  uint64_t deadline_us;
  /* Prints requests and responses, without tensors, to standard error. */
  bool verbose;
  /* TLS without a scheme in the URL. */
  bool tls;
  /* Accepts any certificate. */
  bool tls_insecure;
  /* PEM file of certificate authorities, instead of the system's; may be NULL. */
  const char *tls_ca_file;
  /* PEM file of the client's certificate; NULL if the server asks for none. */
  const char *tls_certificate_file;
  /* PEM file of the key of that certificate; NULL without one. */
  const char *tls_key_file;
} trtc_settings;

/* ---- Bytes that a call returns ---- */

/* What keeps the memory of a buffer or picture alive. */
typedef struct trtc_owner trtc_owner;

/* Bytes of the library. Owned by the caller until trtc_buffer_free. */
typedef struct trtc_buffer {
  /* A NUL follows the last byte. */
  const void *data;
  /* Without that NUL. */
  size_t size;
  /* Not for the caller. */
  trtc_owner *owner;
} trtc_buffer;

/* Releases and zeroes the buffer. */
void trtc_buffer_free(trtc_buffer *buffer);

/* ---- v1: server ---- */

/* A connection to a v1 server, for calls that concern the server. */
typedef struct trtc_v1_client trtc_v1_client;

/* Makes a client, which connects when the first call needs it. */
trtc_error *trtc_v1_client_new(const trtc_settings *settings, trtc_v1_client **client);
/* Releases a client; contexts that were made beside it stay. */
void trtc_v1_client_free(trtc_v1_client *client);

/* Asks whether the server is live. A server that answers that it is not is no error. */
trtc_error *trtc_v1_live(trtc_v1_client *client, uint64_t deadline_us, bool *live);
/* Asks whether the server is ready for requests; likewise. */
trtc_error *trtc_v1_ready(trtc_v1_client *client, uint64_t deadline_us, bool *ready);
/* Asks for the status. `status` is a serialized ServerStatus; of one model, or of all if `model` is NULL. */
trtc_error *trtc_v1_status(trtc_v1_client *client, const char *model, uint64_t deadline_us, trtc_buffer *status);
/* Asks which models the repositories hold. `index` is a serialized ModelRepositoryIndex. */
trtc_error *trtc_v1_repository_index(trtc_v1_client *client, uint64_t deadline_us, trtc_buffer *index);
/* Starts or stops the server's CUDA profiler. */
trtc_error *trtc_v1_profile(trtc_v1_client *client, bool start, uint64_t deadline_us);
/* Loads a model, or loads it again, and waits for the end. The server's control mode must be explicit. */
trtc_error *trtc_v1_load_model(trtc_v1_client *client, const char *model, uint64_t deadline_us);
/* Unloads a model; likewise. */
trtc_error *trtc_v1_unload_model(trtc_v1_client *client, const char *model, uint64_t deadline_us);
/* Registers `byte_size` bytes from `offset` on of the POSIX shared memory `key`, as region `name`. */
trtc_error *trtc_v1_register_system_memory(trtc_v1_client *client, const char *name, const char *key, uint64_t offset,
                                           uint64_t byte_size, uint64_t deadline_us);
/* Registers memory of a GPU as region `name`. `handle` is a CUDA IPC handle, `device_id` the GPU's number at the server. */
trtc_error *trtc_v1_register_cuda_memory(trtc_v1_client *client, const char *name, const void *handle,
                                         size_t handle_size, uint64_t byte_size, int64_t device_id,
                                         uint64_t deadline_us);
/* Ends the registration of a region; of all if `name` is NULL. */
trtc_error *trtc_v1_unregister_memory(trtc_v1_client *client, const char *name, uint64_t deadline_us);
/* Lists the registered regions. `status` is a serialized SharedMemoryStatus. */
trtc_error *trtc_v1_memory_status(trtc_v1_client *client, uint64_t deadline_us, trtc_buffer *status);
/* Request id of the last response of the server to this client; 0 before the first. */
uint64_t trtc_v1_client_last_request_id(const trtc_v1_client *client);

/* ---- v1: inference context of a model ---- */

/* Sends inference requests to one model. */
typedef struct trtc_v1_context trtc_v1_context;
/* The outputs of one request. */
typedef struct trtc_v1_result trtc_v1_result;

/* `DataType` of v1 and of model configurations. */
enum {
  TRTC_TYPE_INVALID = 0,
  TRTC_TYPE_BOOL = 1,
  TRTC_TYPE_UINT8 = 2,
  TRTC_TYPE_UINT16 = 3,
  TRTC_TYPE_UINT32 = 4,
  TRTC_TYPE_UINT64 = 5,
  TRTC_TYPE_INT8 = 6,
  TRTC_TYPE_INT16 = 7,
  TRTC_TYPE_INT32 = 8,
  TRTC_TYPE_INT64 = 9,
  TRTC_TYPE_FP16 = 10,
  TRTC_TYPE_FP32 = 11,
  TRTC_TYPE_FP64 = 12,
  TRTC_TYPE_STRING = 13,
  TRTC_TYPE_BF16 = 14
};

/* Request flags of v1. */
enum { TRTC_V1_SEQUENCE_START = 1, TRTC_V1_SEQUENCE_END = 2 };

/* Flags of a call. */
enum {
  /* Tensor data is copied before the call returns. */
  TRTC_COPY_INPUTS = 1,
  /* v2 streams: the last response of a decoupled model is sent also if it is empty. */
  TRTC_EMPTY_FINAL_RESPONSE = 2
};

/* Makes a context: asks the server for the status of the model, from which it knows inputs and outputs.
 * `version` -1 is the latest. `streaming` sends all requests over one gRPC stream. `correlation_id` 0 is none. */
trtc_error *trtc_v1_context_new(const trtc_settings *settings, const char *model, int64_t version,
                                uint64_t correlation_id, bool streaming, uint64_t deadline_us,
                                trtc_v1_context **context);
/* Releases a context and cancels what runs: when it returns, every callback has been called. From within a callback of the
 * context it does not wait for that callback. */
void trtc_v1_context_free(trtc_v1_context *context);

/* A tensor in the configuration of the model. */
typedef struct trtc_v1_tensor {
  /* As requests name it. */
  const char *name;
  /* Shape without the batch. */
  const int64_t *dims;
  size_t dim_count;
  /* TRTC_TYPE_… */
  int32_t data_type;
  /* `ModelInput.Format`: 0 none, 1 NHWC, 2 NCHW. */
  int32_t format;
  /* Its values are a shape, and it has no batch dimension. */
  bool is_shape_tensor;
  /* Bytes of one batch entry; -1 if type or shape is variable. */
  int64_t byte_size;
} trtc_v1_tensor;

/* What a context knows of its model. */
typedef struct trtc_v1_model {
  /* As given to trtc_v1_context_new. */
  const char *name;
  /* As given to trtc_v1_context_new; -1 is the latest. */
  int64_t version;
  /* As given to trtc_v1_context_new; 0 is none. */
  uint64_t correlation_id;
  /* 0 if the model does not batch. */
  uint64_t max_batch_size;
  /* In the order of the configuration. */
  const trtc_v1_tensor *inputs;
  size_t input_count;
  /* In the order of the configuration. */
  const trtc_v1_tensor *outputs;
  size_t output_count;
  /* The serialized ModelConfig. */
  const void *config;
  /* Of the serialized ModelConfig. */
  size_t config_size;
} trtc_v1_model;

/* Describes the model of a context, without asking the server. `*model` is valid until the context is released. */
trtc_error *trtc_v1_context_model(const trtc_v1_context *context, const trtc_v1_model **model);

/* A requested output. */
typedef struct trtc_v1_output {
  /* Of the output in the model's configuration. */
  const char *name;
  /* 0 asks for the tensor, k for its k highest classes. */
  uint64_t class_count;
  /* The region that receives the tensor; NULL if the response carries it. */
  const char *region;
  /* Where the tensor goes in the region. */
  uint64_t region_offset;
  /* The room for it. */
  uint64_t region_byte_size;
} trtc_v1_output;

/* What a v1 request has beside its inputs. */
typedef struct trtc_v1_options {
  size_t struct_size;
  /* 0 is 1. */
  uint64_t batch_size;
  /* TRTC_V1_SEQUENCE_START, TRTC_V1_SEQUENCE_END. */
  uint32_t flags;
  /* Level in the server's queue, 1 is the highest; 0 is the model's default. */
  uint32_t priority;
  /* The server's limit for the time in its queue, in microseconds; 0 is the model's default. */
  uint64_t timeout_us;
  /* 0 keeps the context's; another replaces it for this request and later ones. */
  uint64_t correlation_id;
  /* Those that the response is to have. */
  const trtc_v1_output *outputs;
  size_t output_count;
} trtc_v1_options;

/* Stateful form. Options and inputs stay set from request to request; an input is named by its index in the model.
 * An input is reset, then given its shape if that is variable, then its data: one call for each batch entry, or one
 * shared-memory region. Messages of errors are those of the original client library. */

/* Sets the options of the requests that follow. */
trtc_error *trtc_v1_set_options(trtc_v1_context *context, const trtc_v1_options *options);
/* Forgets shape, data and region of an input. */
trtc_error *trtc_v1_input_reset(trtc_v1_context *context, size_t input);
/* Sets the shape of an input without the batch: `count` dimensions, none of them -1. */
trtc_error *trtc_v1_input_set_shape(trtc_v1_context *context, size_t input, const int64_t *dims, size_t count);
/* Adds the data of one batch entry, little-endian and row-major. */
trtc_error *trtc_v1_input_add_data(trtc_v1_context *context, size_t input, const void *data, size_t size);
/* Adds one batch entry of a STRING input from `count` strings, which are copied. */
trtc_error *trtc_v1_input_add_strings(trtc_v1_context *context, size_t input, const char *const *strings,
                                      const size_t *sizes, size_t count);
/* Takes the whole batch of an input from a registered region. */
trtc_error *trtc_v1_input_set_region(trtc_v1_context *context, size_t input, const char *region, uint64_t offset,
                                     uint64_t byte_size);
/* `byte_size` receives the bytes of one batch entry in the shape that is set, -1 if unknown; `total` the bytes of the data
 * given since the reset. */
trtc_error *trtc_v1_input_sizes(const trtc_v1_context *context, size_t input, int64_t *byte_size, uint64_t *total);

/* Sends what is set and waits for the response. `flags` are flags of a call. */
trtc_error *trtc_v1_run(trtc_v1_context *context, uint32_t flags, uint64_t deadline_us, trtc_v1_result **result);

/* Called once for each request. The callee owns `error` or `result`; the other is NULL. */
typedef void (*trtc_v1_callback)(void *user, uint64_t id, trtc_error *error, trtc_v1_result *result);

/* Sends what is set; `id` numbers the requests of the context from 1. Inputs may be set again at once. Without a callback
 * the result waits for trtc_v1_take. Callbacks are called in the order in which responses arrive. */
trtc_error *trtc_v1_run_async(trtc_v1_context *context, uint32_t flags, uint64_t deadline_us, trtc_v1_callback callback,
                              void *user, uint64_t *id);

/* One-call form: a whole request in one structure. Neither reads nor changes what the stateful form has set. */

/* An input of a request. */
typedef struct trtc_v1_input {
  /* Of the input in the model's configuration. */
  const char *name;
  /* Shape without the batch; NULL is that of the model's configuration. */
  const int64_t *dims;
  size_t dim_count;
  /* One buffer for each batch entry. */
  const void *const *data;
  /* Bytes of each buffer. */
  const size_t *sizes;
  /* Number of buffers. */
  size_t count;
  /* Or a region that holds the whole batch; otherwise NULL. */
  const char *region;
  /* Where the tensor begins in the region. */
  uint64_t region_offset;
  /* Bytes of the whole batch. */
  uint64_t region_byte_size;
} trtc_v1_input;

/* A whole request. */
typedef struct trtc_v1_request {
  size_t struct_size;
  /* Required. */
  const trtc_v1_options *options;
  /* In any order. */
  const trtc_v1_input *inputs;
  size_t input_count;
  /* Flags of a call. */
  uint32_t flags;
  /* Microseconds; 0 is that of the settings. */
  uint64_t deadline_us;
} trtc_v1_request;

/* Sends a request and waits for the response. */
trtc_error *trtc_v1_infer(trtc_v1_context *context, const trtc_v1_request *request, trtc_v1_result **result);
/* Sends a request; the rest as trtc_v1_run_async. */
trtc_error *trtc_v1_infer_async(trtc_v1_context *context, const trtc_v1_request *request, trtc_v1_callback callback,
                                void *user, uint64_t *id);

/* Prepared form: a request that is checked and encoded once, for requests that differ in the bytes of their inputs only. */
typedef struct trtc_v1_prepared trtc_v1_prepared;

/* How a reply begins. Numbers are in the byte order of the machine. */
typedef struct trtc_v1_reply {
  /* Bytes of the reply, or 0 if `result` has the outputs: the reply is too small for them, or one of them is empty, has
     strings, is given as classes or in a region. */
  uint64_t size;
  /* To be released; NULL if the outputs are in the reply. */
  trtc_v1_result *result;
  /* That the server gave to the request. */
  uint64_t request_id;
  /* That has executed the request. */
  int64_t model_version;
  /* Bytes of the description, which follows: 64-bit integers, for each output its type, the number of its dimensions, the
     dimensions without the batch, and the bytes of the whole batch. Then come the tensors, one behind the other. */
  uint64_t description_size;
} trtc_v1_reply;

/* Prepares a request. Its flags are not used, and the bytes of its inputs only counted. Contexts with a stream prepare none. A
 * prepared request keeps the correlation id that the context has now. */
trtc_error *trtc_v1_prepare(trtc_v1_context *context, const trtc_v1_request *request, trtc_v1_prepared **prepared);
/* Sends a prepared request and waits for the reply. `data` has the inputs that are not in regions, in the order of the request,
 * each with its batch entries, one behind the other. `reply` has the alignment and at least the size of trtc_v1_reply. Threads
 * may share a prepared request. */
trtc_error *trtc_v1_prepared_infer(trtc_v1_prepared *prepared, const void *data, size_t size, void *reply,
                                   size_t capacity);
/* Releases a prepared request. */
void trtc_v1_prepared_free(trtc_v1_prepared *prepared);

/* Completed requests for a thread that takes many of them in one call. No thread of the library runs code of the program. */
typedef struct trtc_v1_queue trtc_v1_queue;

/* A completed request of a queue. */
typedef struct trtc_v1_completion {
  /* Bytes from here to the next completion. */
  uint64_t size;
  /* As given with the request. */
  void *user;
  /* Number of the request in its context. */
  uint64_t id;
  /* The caller owns it. If it is not NULL, `reply` is zero. */
  trtc_error *error;
  /* Description and tensors follow as in a reply of trtc_v1_prepared_infer. */
  trtc_v1_reply reply;
} trtc_v1_completion;

/* Makes an empty queue. */
trtc_error *trtc_v1_queue_new(trtc_v1_queue **queue);
/* Waits until a request has completed, or the queue is closed. `open` becomes false if it is closed and has nothing to take. */
trtc_error *trtc_v1_queue_wait(trtc_v1_queue *queue, bool *open);
/* Takes completed requests, in the order of their completion, without waiting: as many as have their place in `completions`,
 * which has the alignment and at least the size of trtc_v1_completion. `*count` may be 0. Outputs that are larger than all of
 * `completions` are in `result`. */
trtc_error *trtc_v1_queue_take(trtc_v1_queue *queue, void *completions, size_t capacity, size_t *count);
/* Ends the waiting of other threads. Requests still complete into the queue, and may be taken. */
void trtc_v1_queue_close(trtc_v1_queue *queue);
/* Releases a queue with the requests that were not taken, and those that complete later; cancel them, or release their context,
 * before the memory of their inputs is released. */
void trtc_v1_queue_free(trtc_v1_queue *queue);
/* As trtc_v1_infer_async, with the queue in place of a callback. The outputs are in `result`. The inputs must stay unchanged
 * until the request was taken. */
trtc_error *trtc_v1_infer_queued(trtc_v1_context *context, const trtc_v1_request *request, trtc_v1_queue *queue, void *user,
                                 uint64_t *id);
/* As trtc_v1_prepared_infer, without waiting. `data` may change at once. */
trtc_error *trtc_v1_prepared_infer_queued(trtc_v1_prepared *prepared, const void *data, size_t size, trtc_v1_queue *queue,
                                          void *user, uint64_t *id);

/* Takes the result of a request without a callback. `id` 0 takes that which completed first. With `wait` the call waits for the
 * request; without, and if it has not completed, `result` becomes NULL. If the request failed, its error is returned.
 * Fails if no such request was sent, or its result was taken. `taken` receives the id; it may be NULL. */
trtc_error *trtc_v1_take(trtc_v1_context *context, uint64_t id, bool wait, uint64_t *taken, trtc_v1_result **result);
/* Asks for the id of a completed request whose result was not taken, 0 if there is none and `wait` is false. */
trtc_error *trtc_v1_next_completed(trtc_v1_context *context, bool wait, uint64_t *id);
/* Cancels a request: its callback is called with TRTC_KIND_CANCELLED, unless it has completed. */
trtc_error *trtc_v1_cancel(trtc_v1_context *context, uint64_t id);

/* Sums over the requests of a context. */
typedef struct trtc_v1_statistics {
  /* Requests with a response. */
  uint64_t completed_request_count;
  /* From the calls to the responses, in nanoseconds. */
  uint64_t total_request_time_ns;
  /* Of that, until the requests were sent. */
  uint64_t send_time_ns;
  /* Of that, from the first byte of the responses on. */
  uint64_t receive_time_ns;
} trtc_v1_statistics;

/* Writes the statistics of a context. */
trtc_error *trtc_v1_context_statistics(const trtc_v1_context *context, trtc_v1_statistics *statistics);

/* ---- v1: result of a request ---- */

/* A class of a classification. */
typedef struct trtc_class {
  /* Number of the element in the tensor. */
  uint64_t index;
  /* Value of the element. */
  float value;
  /* Empty if the model has no label for it. */
  const char *label;
} trtc_class;

/* Data or classes of one batch entry. */
typedef struct trtc_v1_entry {
  /* NULL if the response carries classes. */
  const void *data;
  /* Of the data. */
  size_t size;
  /* In descending order of their values. */
  const trtc_class *classes;
  size_t class_count;
} trtc_v1_entry;

/* An output of a response. */
typedef struct trtc_v1_result_output {
  /* As requested. */
  const char *name;
  /* TRTC_TYPE_… */
  int32_t data_type;
  /* The response carries classes, not the tensor. */
  bool is_class;
  /* The tensor is in the region that the request named. */
  bool in_region;
  /* Shape without the batch. */
  const int64_t *dims;
  size_t dim_count;
  /* The tensor of the whole batch, in place. */
  const void *data;
  /* Of the tensor. */
  size_t size;
  /* One for each batch entry. */
  const trtc_v1_entry *entries;
  size_t entry_count;
} trtc_v1_result_output;

/* What a response says. */
typedef struct trtc_v1_result_info {
  /* Of the model. */
  const char *model_name;
  /* That has executed the request. */
  int64_t model_version;
  /* Number of batch entries. */
  uint64_t batch_size;
  /* Id of the server. */
  const char *server_id;
  /* That the server gave to the request. */
  uint64_t request_id;
  /* In the order of the request. */
  const trtc_v1_result_output *outputs;
  size_t output_count;
} trtc_v1_result_info;

/* Shows a result. `*info` is valid until the result is released. */
trtc_error *trtc_v1_result_get(const trtc_v1_result *result, const trtc_v1_result_info **info);
/* Releases a result with the memory of its outputs. */
void trtc_v1_result_free(trtc_v1_result *result);

/* ---- v2: server ---- */

/* A connection to a v2 server. */
typedef struct trtc_v2_client trtc_v2_client;

/* Makes a client, which connects when the first call needs it. */
trtc_error *trtc_v2_client_new(const trtc_settings *settings, trtc_v2_client **client);
/* Releases a client and cancels its asynchronous calls: when it returns, every callback of them has been called. Streams stay. */
void trtc_v2_client_free(trtc_v2_client *client);

/* Asks whether the server is live. A server that answers that it is not is no error. */
trtc_error *trtc_v2_live(trtc_v2_client *client, uint64_t deadline_us, bool *live);
/* Asks whether the server is ready for requests; likewise. */
trtc_error *trtc_v2_ready(trtc_v2_client *client, uint64_t deadline_us, bool *ready);
/* Asks whether a model is ready; likewise. `version` NULL is the server's choice, here and below. */
trtc_error *trtc_v2_model_ready(trtc_v2_client *client, const char *model, const char *version, uint64_t deadline_us,
                                bool *ready);
/* Name, version and extensions of the server. Replies are JSON with the names of the HTTP endpoints, over gRPC too. */
trtc_error *trtc_v2_server_metadata(trtc_v2_client *client, uint64_t deadline_us, trtc_buffer *json);
/* Versions, inputs and outputs of a model. */
trtc_error *trtc_v2_model_metadata(trtc_v2_client *client, const char *model, const char *version, uint64_t deadline_us,
                                   trtc_buffer *json);
/* The configuration of a model, as the server has completed it. */
trtc_error *trtc_v2_model_config(trtc_v2_client *client, const char *model, const char *version, uint64_t deadline_us,
                                 trtc_buffer *json);
/* Counts and times of a model, of all models if `model` is NULL. */
trtc_error *trtc_v2_statistics(trtc_v2_client *client, const char *model, const char *version, uint64_t deadline_us,
                               trtc_buffer *json);
/* Which models the repositories hold, or, with `ready_only`, which of them are ready. */
trtc_error *trtc_v2_repository_index(trtc_v2_client *client, bool ready_only, uint64_t deadline_us, trtc_buffer *json);

/* A file of a model that is loaded from the request. */
typedef struct trtc_v2_file {
  /* From the model's directory: "1/model.onnx". */
  const char *path;
  /* Its contents. */
  const void *data;
  /* Of the contents. */
  size_t size;
} trtc_v2_file;

/* Loads a model, or loads it again, and waits for the end. The server's control mode must be explicit. `config` is the model's
 * configuration as JSON, or NULL for that of the repository. Files need a configuration. */
trtc_error *trtc_v2_load_model(trtc_v2_client *client, const char *model, const char *config, const trtc_v2_file *files,
                               size_t file_count, uint64_t deadline_us);
/* Unloads a model, and, with `unload_dependents`, the models of its steps; likewise. */
trtc_error *trtc_v2_unload_model(trtc_v2_client *client, const char *model, bool unload_dependents,
                                 uint64_t deadline_us);

/* Registers `byte_size` bytes from `offset` on of the POSIX shared memory `key`, as region `name`. */
trtc_error *trtc_v2_register_system_memory(trtc_v2_client *client, const char *name, const char *key, uint64_t offset,
                                           uint64_t byte_size, uint64_t deadline_us);
/* Registers memory of a GPU as region `name`. `handle` is a CUDA IPC handle, `device_id` the GPU's number at the server. */
trtc_error *trtc_v2_register_cuda_memory(trtc_v2_client *client, const char *name, const void *handle,
                                         size_t handle_size, int64_t device_id, uint64_t byte_size,
                                         uint64_t deadline_us);
/* Ends the registration of a region in system memory; of all of them if `name` is NULL. */
trtc_error *trtc_v2_unregister_system_memory(trtc_v2_client *client, const char *name, uint64_t deadline_us);
/* Ends the registration of a region in memory of a GPU; of all of them if `name` is NULL. */
trtc_error *trtc_v2_unregister_cuda_memory(trtc_v2_client *client, const char *name, uint64_t deadline_us);
/* Describes a region in system memory, all of them if `name` is NULL. */
trtc_error *trtc_v2_system_memory_status(trtc_v2_client *client, const char *name, uint64_t deadline_us,
                                         trtc_buffer *json);
/* Describes a region in memory of a GPU, all of them if `name` is NULL. */
trtc_error *trtc_v2_cuda_memory_status(trtc_v2_client *client, const char *name, uint64_t deadline_us,
                                       trtc_buffer *json);

/* Reads or changes the settings of traces, of one model, or of the server if `model` is NULL. `changes` is a JSON object of the
 * settings to change, or NULL to read. `json` receives the settings after it. */
trtc_error *trtc_v2_trace_settings(trtc_v2_client *client, const char *model, const char *changes, uint64_t deadline_us,
                                   trtc_buffer *json);
/* Reads or changes the settings of the server's log; likewise. */
trtc_error *trtc_v2_log_settings(trtc_v2_client *client, const char *changes, uint64_t deadline_us, trtc_buffer *json);

/* ---- v2: inference ---- */

/* A response. */
typedef struct trtc_v2_result trtc_v2_result;
/* A gRPC stream of requests and responses. */
typedef struct trtc_v2_stream trtc_v2_stream;

/* Types of a parameter's value. */
enum {
  TRTC_PARAMETER_BOOL = 0,
  TRTC_PARAMETER_INT64 = 1,
  TRTC_PARAMETER_STRING = 2,
  TRTC_PARAMETER_DOUBLE = 3,
  TRTC_PARAMETER_UINT64 = 4
};

/* A parameter of a request or a response. */
typedef struct trtc_parameter {
  /* As the server or the model knows it. */
  const char *name;
  /* TRTC_PARAMETER_…, which selects one of the values. */
  int32_t type;
  /* Of bool, int64 and, converted, uint64. */
  int64_t int_value;
  /* Of double. */
  double double_value;
  /* Of string. */
  const char *string_value;
} trtc_parameter;

/* An input of a request. */
typedef struct trtc_v2_input {
  /* As in the model's metadata. */
  const char *name;
  /* "FP32", "BYTES", and so on. */
  const char *datatype;
  /* With the batch, if the model has one; no dimension is -1. */
  const int64_t *shape;
  /* Number of dimensions. */
  size_t rank;
  /* Little-endian and row-major; elements of BYTES have their length in 4 bytes before them. */
  const void *data;
  /* Of the data. */
  size_t size;
  /* Or a region that holds the tensor; otherwise NULL. */
  const char *region;
  /* Where the tensor begins in the region. */
  uint64_t region_offset;
  /* Of the tensor in the region. */
  uint64_t region_byte_size;
} trtc_v2_input;

/* A requested output. */
typedef struct trtc_v2_output {
  /* As in the model's metadata. */
  const char *name;
  /* 0 asks for the tensor, k for its k highest classes. */
  uint64_t class_count;
  /* The region that receives the tensor; NULL if the response carries it. */
  const char *region;
  /* Where the tensor goes in the region. */
  uint64_t region_offset;
  /* The room for it. */
  uint64_t region_byte_size;
} trtc_v2_output;

/* An inference request. */
typedef struct trtc_v2_request {
  size_t struct_size;
  /* Name of the model. */
  const char *model;
  /* NULL is the server's choice. */
  const char *version;
  /* Comes back in the response; may be NULL. */
  const char *id;
  /* In any order. */
  const trtc_v2_input *inputs;
  size_t input_count;
  /* All outputs of the model if there are none. */
  const trtc_v2_output *outputs;
  size_t output_count;
  /* Beside those that this structure has fields for. */
  const trtc_parameter *parameters;
  size_t parameter_count;
  /* The sequence, if a number names it; 0 is none. */
  uint64_t sequence_id;
  /* The sequence, if a text names it; NULL is none. */
  const char *sequence_id_text;
  /* The first request of its sequence. */
  bool sequence_start;
  /* The last request of its sequence. */
  bool sequence_end;
  /* Level in the server's queue, 1 is the highest; 0 is the model's default. */
  uint64_t priority;
  /* The server's limit for the time in its queue, in microseconds; 0 is the model's default. */
  uint64_t timeout_us;
  /* Sent with this request, beside those of the settings; not by streams. */
  const trtc_header *headers;
  size_t header_count;
  /* Flags of a call. */
  uint32_t flags;
  /* Microseconds; 0 is that of the settings. Not used by streams. */
  uint64_t deadline_us;
} trtc_v2_request;

/* Sends a request and waits for the response. */
trtc_error *trtc_v2_infer(trtc_v2_client *client, const trtc_v2_request *request, trtc_v2_result **result);

/* Called once for each request, for a stream once for each response and error. The callee owns `error` or `result`. */
typedef void (*trtc_v2_callback)(void *user, uint64_t call, trtc_error *error, trtc_v2_result *result);

/* Sends a request. `call` numbers the asynchronous calls of the client from 1; it may be NULL. */
trtc_error *trtc_v2_infer_async(trtc_v2_client *client, const trtc_v2_request *request, trtc_v2_callback callback,
                                void *user, uint64_t *call);

/* Completed calls for a thread that waits on a file descriptor, such as that of an event loop. */
typedef struct trtc_completion_queue trtc_completion_queue;

/* A completed call. */
typedef struct trtc_completion {
  /* As given with the call. */
  void *user;
  /* Number of the call. */
  uint64_t call;
  /* Why the call failed, or NULL. The caller owns it. */
  trtc_error *error;
  /* The response, or NULL. The caller owns it. */
  trtc_v2_result *result;
} trtc_completion;

/* Makes an empty queue. `descriptor` is readable (poll, epoll) while calls wait to be taken. It belongs to the queue: neither
 * read nor close it. */
trtc_error *trtc_completion_queue_new(trtc_completion_queue **queue, int *descriptor);
/* Takes up to `capacity` completed calls, in the order of their completion, without waiting. `*count` may be 0. */
trtc_error *trtc_completion_queue_take(trtc_completion_queue *queue, trtc_completion *completions, size_t capacity,
                                       size_t *count);
/* Releases a queue with the calls that were not taken, and those that complete later; cancel them, or release their client,
 * before the memory of their inputs is released. */
void trtc_completion_queue_free(trtc_completion_queue *queue);
/* As trtc_v2_infer_async, with the queue in place of a callback. The inputs must stay unchanged until the call was taken. */
trtc_error *trtc_v2_infer_queued(trtc_v2_client *client, const trtc_v2_request *request, trtc_completion_queue *queue,
                                 void *user, uint64_t *call);

/* Cancels a call: it completes with TRTC_KIND_CANCELLED, unless it has completed. */
trtc_error *trtc_v2_cancel(trtc_v2_client *client, uint64_t call);

/* Opens a stream (gRPC only), over which a request can have any number of responses. Responses go to the callback (`call`
 * is 0), or, if it is NULL, to trtc_v2_stream_next. A call of the callback with neither error nor result is the last: the
 * stream has ended. `deadline_us` limits the whole stream; 0 is none. */
trtc_error *trtc_v2_stream_open(trtc_v2_client *client, trtc_v2_callback callback, void *user, uint64_t deadline_us,
                                trtc_v2_stream **stream);
/* Sends a request over a stream. Waits while the send buffer of the stream is full. */
trtc_error *trtc_v2_stream_send(trtc_v2_stream *stream, const trtc_v2_request *request);
/* Waits for the next response, for at most `deadline_us`. An error of one request is returned as an error, and the stream goes on
 * unless `*ended` is true. `result` NULL without error: the stream has ended. */
trtc_error *trtc_v2_stream_next(trtc_v2_stream *stream, uint64_t deadline_us, trtc_v2_result **result, bool *ended);
/* Ends the requests of a stream; the server completes those it has. */
trtc_error *trtc_v2_stream_close(trtc_v2_stream *stream);
/* Releases a stream and cancels what runs. When it returns the callback is not called any more, unless it was called from
 * within it. */
void trtc_v2_stream_free(trtc_v2_stream *stream);

/* An output of a response. */
typedef struct trtc_v2_result_output {
  /* As in the model's metadata. */
  const char *name;
  /* "FP32", "BYTES", and so on. */
  const char *datatype;
  /* With the batch, if the model has one. */
  const int64_t *shape;
  /* Number of dimensions. */
  size_t rank;
  /* The tensor in place, as trtc_v2_input has it; NULL if it is in a region. */
  const void *data;
  /* Of the tensor. */
  size_t size;
  /* The tensor is in the region that the request named. */
  bool in_region;
} trtc_v2_result_output;

/* What a response says. Texts are empty where the response has none. */
typedef struct trtc_v2_result_info {
  /* Of the model. */
  const char *model_name;
  /* That has executed the request. */
  const char *model_version;
  /* Of the request. */
  const char *id;
  /* Of a stream: no more responses to this request follow. Otherwise true. */
  bool is_final;
  /* In the order of the response. */
  const trtc_v2_result_output *outputs;
  size_t output_count;
  /* Of the response. */
  const trtc_parameter *parameters;
  size_t parameter_count;
} trtc_v2_result_info;

/* Shows a result. `*info` is valid until the result is released. */
trtc_error *trtc_v2_result_get(const trtc_v2_result *result, const trtc_v2_result_info **info);
/* Releases a result with the memory of its outputs. */
void trtc_v2_result_free(trtc_v2_result *result);

/* ---- Pictures ---- */

/* Pixels in rows from the top, three bytes each: red, green, blue. */
typedef struct trtc_image {
  /* Pixels in a row. */
  uint32_t width;
  /* Number of rows. */
  uint32_t height;
  /* 3 x width x height bytes. */
  const uint8_t *pixels;
  /* Not for the caller. */
  trtc_owner *owner;
} trtc_image;

/* Reads a PNG or JPEG file. Grey pictures become grey RGB; transparency is dropped. */
trtc_error *trtc_image_read(const char *path, trtc_image *image);
/* Scales with bilinear interpolation between pixel centres, rounded to the nearest value. */
trtc_error *trtc_image_resize(const trtc_image *image, uint32_t width, uint32_t height, trtc_image *resized);
/* Releases and zeroes the picture. */
void trtc_image_free(trtc_image *image);

#ifdef __cplusplus
}
#endif

#endif
