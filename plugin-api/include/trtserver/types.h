/* SPDX-License-Identifier: Apache-2.0 */
/* Plain values of the interface: strings, buffers, tensors, parameters, opaque handles.
 *
 * Rules of all these headers: integers have a fixed width; what looks like an enum is a uint32_t field
 * and a list of constants, and readers must accept unknown numbers; pads and reserved fields are zero.
 * `n_x` is the number of elements of the array `x`. A structure that begins with `size` may grow at its end:
 * who makes it writes its sizeof there. All times are CLOCK_MONOTONIC nanoseconds. */
#ifndef TRTSERVER_TYPES_H
#define TRTSERVER_TYPES_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the interface in these headers. A backend runs on a host with the same major number and
 * at least its minor number. */
#define TRTS_ABI_MAJOR 1u
/* Rises with each compatible addition. */
#define TRTS_ABI_MINOR 0u

/* Handles owned by the host; opaque to backends. Using a request handle, responder or response after it
 * was given back returns an error or is logged; the host stays intact. For the other handles, and for the
 * memory behind views and buffers, use after free is undefined behaviour. */

typedef struct trts_error trts_error;                   /* a failure; null = success; freed by its receiver */
typedef struct trts_event trts_event;                   /* a point in a stream of device work */
typedef struct trts_request_handle trts_request_handle; /* input side of a request; freed by request_release */
typedef struct trts_responder trts_responder;           /* response side of a request: sends its responses */
typedef struct trts_response trts_response;             /* one response under construction */
typedef struct trts_scope trts_scope;                   /* a backend, model or instance: owner of logs and metrics */

/* Handles owned by the backend. The host stores them and passes them back. Define these structs, or
 * cast to your own. */

typedef struct trts_backend trts_backend;   /* created by backend_open, freed by backend_close */
typedef struct trts_model trts_model;       /* created by model_open, freed by model_close */
typedef struct trts_instance trts_instance; /* created by instance_open, freed by instance_close */

/* UTF-8 text with its length. p[n] is always 0; p may be null when the text is empty. Borrowed. */
typedef struct trts_str {
  const char *p; /* the first byte */
  uint64_t n;    /* bytes, without the terminator */
} trts_str;

/* Bytes with their length. Borrowed. */
typedef struct trts_bytes {
  const void *p; /* the first byte; may be null when there are none */
  uint64_t n;    /* bytes */
} trts_bytes;

/* trts_memory.memory_type */
enum { TRTS_MEMORY_CPU = 0, TRTS_MEMORY_PINNED = 1, TRTS_MEMORY_GPU = 2, TRTS_MEMORY_MANAGED = 3 };

/* Type of memory, and the device that it belongs to. */
typedef struct trts_memory {
  uint32_t memory_type; /* TRTS_MEMORY_… */
  int32_t device_id;    /* device ordinal for GPU and managed memory; else 0 */
} trts_memory;

/* One contiguous block of memory. Functions that take or return one say who owns it. */
typedef struct trts_buf {
  void *ptr;              /* the first byte; of GPU memory, an address of the device */
  uint64_t bytes;         /* length */
  trts_memory memory;     /* where it is */
  trts_event *ready;      /* memory may be accessed after this event; null = now; borrowed. GPU: see trts.device */
  uint64_t memory_handle; /* identifies memory allocated by the host, for memory_free; 0 = none */
} trts_buf;

/* Element types; numbers of DataType in a model configuration. */
enum {
  TRTS_DTYPE_INVALID = 0,
  TRTS_DTYPE_BOOL = 1,
  TRTS_DTYPE_UINT8 = 2,
  TRTS_DTYPE_UINT16 = 3,
  TRTS_DTYPE_UINT32 = 4,
  TRTS_DTYPE_UINT64 = 5,
  TRTS_DTYPE_INT8 = 6,
  TRTS_DTYPE_INT16 = 7,
  TRTS_DTYPE_INT32 = 8,
  TRTS_DTYPE_INT64 = 9,
  TRTS_DTYPE_FP16 = 10,
  TRTS_DTYPE_FP32 = 11,
  TRTS_DTYPE_FP64 = 12,
  TRTS_DTYPE_STRING = 13, /* each element: little-endian u32 byte count, then the bytes */
  TRTS_DTYPE_BF16 = 14
};

/* Bits of trts_tensor.flags and trts_tensor_decl.flags */
enum {
  TRTS_TENSOR_OPTIONAL = 1,    /* requests may omit this input */
  TRTS_TENSOR_STATE = 2,       /* state that the host stores for a sequence */
  TRTS_TENSOR_CONTROL = 4,     /* sequence control added by the host */
  TRTS_TENSOR_SHAPE_TENSOR = 8, /* the values are a shape; never has a batch dimension */
  TRTS_TENSOR_RAGGED = 16, /* shapes may differ within a batch; gather returns the elements of all requests one after another */
  TRTS_TENSOR_BATCH = 32   /* batch input added by the host: describes the requests of the batch, has no batch dimension */
};

/* Dimensions that an output may have; hosts refuse a greater rank without reading the shape. */
enum { TRTS_MAX_RANK = 1024 };

/* One input of a request. Owned by the host, read-only, at a fixed address until the request is released. */
typedef struct trts_tensor {
  trts_str name;  /* as in the model configuration */
  uint32_t index; /* in the model configuration's inputs; UINT32_MAX = not listed there */
  uint32_t dtype; /* TRTS_DTYPE_… */
  uint32_t rank;  /* number of dimensions */
  uint32_t flags;       /* TRTS_TENSOR_… */
  const int64_t *shape; /* rank numbers, batch dimension first when the model batches */
  uint64_t bytes;       /* sum over the parts */
  uint32_t n_parts;
  uint32_t pad;
  const trts_buf *parts; /* consecutive pieces, aligned as trts_backend_info.align requires */
} trts_tensor;

/* trts_param.kind */
enum {
  TRTS_PARAM_STRING = 0,
  TRTS_PARAM_INT = 1,
  TRTS_PARAM_BOOL = 2,
  TRTS_PARAM_DOUBLE = 3,
  TRTS_PARAM_UINT = 4,
  TRTS_PARAM_BYTES = 5
};

/* A named value. Borrowed. */
typedef struct trts_param {
  trts_str key;  /* name */
  uint32_t kind; /* TRTS_PARAM_…; selects text or bits */
  uint32_t pad;
  trts_str text; /* STRING, BYTES */
  uint64_t bits; /* other kinds: an int64_t, a uint64_t, 0 or 1, the bits of a double */
} trts_param;

/* Name and version of an extension table; see extensions.h. */
typedef struct trts_extension {
  trts_str name;    /* TRTS_EXTENSION_… */
  uint32_t version; /* TRTS_EXTENSION_…_VERSION: the newest that is offered, or the oldest that is required */
  uint32_t pad;
} trts_extension;

/* Responses of a stream that its client has not read. */
typedef struct trts_backlog {
  uint64_t bytes;     /* of tensors that wait for the client */
  uint64_t responses; /* that have them */
  uint64_t limit; /* response_send waits while bytes is at least this */
  uint64_t reserved;
} trts_backlog;

/* Codes of an error. */
enum {
  TRTS_CODE_UNKNOWN = 0,
  TRTS_CODE_INTERNAL = 1,
  TRTS_CODE_NOT_FOUND = 2,
  TRTS_CODE_INVALID = 3,
  TRTS_CODE_UNAVAILABLE = 4,
  TRTS_CODE_UNSUPPORTED = 5,
  TRTS_CODE_EXISTS = 6,
  TRTS_CODE_CANCELLED = 7,
  TRTS_CODE_DEADLINE = 8,
  TRTS_CODE_EXHAUSTED = 9,
  TRTS_CODE_DEVICE_LOST = 10,
  TRTS_CODE_PERMISSION = 11,
  TRTS_CODE_ABORTED = 12
};

/* Flags of an error. */
enum {
  TRTS_ERROR_RETRYABLE = 1,   /* the same request may succeed if sent again */
  TRTS_ERROR_CLIENT = 2,      /* caused by the request, not by the model */
  TRTS_ERROR_DEVICE_LOST = 4,
  TRTS_ERROR_MODEL_BROKEN = 8 /* the host takes the instance out of service */
};

/* Log levels. A record is written when its level is at most that of its scope. */
enum {
  TRTS_LEVEL_ERROR = 1,
  TRTS_LEVEL_WARNING = 2,
  TRTS_LEVEL_INFO = 3,
  TRTS_LEVEL_VERBOSE = 4,
  TRTS_LEVEL_TRACE = 5
};

/* Borrows a C string; valid as long as the string. */
static inline trts_str trts_text(const char *s) {
  trts_str text;
  text.p = s;
  text.n = (uint64_t)strlen(s);
  return text;
}

/* Non-zero when the text equals the C string. */
static inline int trts_is(trts_str text, const char *s) {
  return text.n == (uint64_t)strlen(s) && (text.n == 0 || memcmp(text.p, s, (size_t)text.n) == 0);
}

#ifdef __cplusplus
}
#endif
#endif
