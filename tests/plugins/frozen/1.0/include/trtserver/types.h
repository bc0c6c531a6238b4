/* Plain values that cross the boundary: strings, places, buffers, tensors, parameters, opaque handles.
 *
 * Rules of all these headers: fixed-width integers only; what looks like an enum is a uint32_t field
 * and a list of constants, and a number outside the list is unknown, not an error of the reader;
 * every pad and reserved field is zero. */
#ifndef TRTSERVER_TYPES_H
#define TRTSERVER_TYPES_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The interface of these headers. Major numbers must be equal; a plugin runs on every host whose
 * minor number is at least the plugin's. */
#define TRTS_ABI_MAJOR 1u
#define TRTS_ABI_MINOR 0u

/* Handles of the host. Only the host looks inside. A request, reply or response that is used after it
 * was given back, or given back twice, is an error or a line in the host's log and no more; for the
 * other handles, and for the memory behind views and buffers, that is undefined. */
typedef struct trts_error trts_error;       /* a failure; null = success; whoever receives one frees it */
typedef struct trts_event trts_event;       /* a point in some stream, or "already done" */
typedef struct trts_request trts_request;   /* input side of a call; given back with request_release */
typedef struct trts_reply trts_reply;       /* answer side of a call; counted, may outlive the request */
typedef struct trts_response trts_response; /* one answer under construction; gone once sent or dropped */
typedef struct trts_scope trts_scope;       /* who speaks and who pays: a plugin, a model, an instance */
typedef struct trts_infer trts_infer;       /* a nested call */
typedef struct trts_metric trts_metric;     /* belongs to a scope and goes with it */

/* Handles of the plugin. The host keeps them and passes them back, nothing else. Define these
 * structs, or cast to your own. */
typedef struct trts_plugin trts_plugin;     /* made by plugin_open, freed by plugin_close */
typedef struct trts_model trts_model;       /* made by model_open, freed by model_close */
typedef struct trts_instance trts_instance; /* made by instance_open, freed by instance_close */
typedef struct trts_batcher trts_batcher;   /* made by batcher_open, freed by batcher_close */

/* Counted UTF-8. p[n] is 0 always; an empty text may have a null p. Belongs to whoever lends it. */
typedef struct trts_str {
  const char *p;
  uint64_t n; /* bytes, without the terminator */
} trts_str;

/* Counted bytes. Belong to whoever lends them. */
typedef struct trts_bytes {
  const void *p;
  uint64_t n;
} trts_bytes;

/* trts_place.kind */
enum { TRTS_PLACE_CPU = 0, TRTS_PLACE_PINNED = 1, TRTS_PLACE_GPU = 2, TRTS_PLACE_MANAGED = 3 };

/* Where memory lives. */
typedef struct trts_place {
  uint32_t kind;  /* TRTS_PLACE_… */
  int32_t device; /* ordinal, for GPU and managed memory; else 0 */
} trts_place;

/* One contiguous piece of memory. What owns it is said where one is passed. */
typedef struct trts_buf {
  void *ptr;
  uint64_t bytes;
  trts_place place;
  trts_event *ready; /* touch the memory only after this point; null = now; borrowed */
  uint64_t lease;    /* the host's name for memory of its own, for mem_free; 0 = none */
} trts_buf;

/* Element types; the numbers of DataType in a model configuration. */
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
  TRTS_TENSOR_OPTIONAL = 1,    /* callers may leave this input out */
  TRTS_TENSOR_STATE = 2,       /* state that the host keeps for a sequence */
  TRTS_TENSOR_CONTROL = 4,     /* a sequence control that the host adds */
  TRTS_TENSOR_SHAPE_TENSOR = 8 /* the values are a shape; never carries a batch dimension */
};

/* One input of one call. The host's, read-only, unmoved until the call's request is released. */
typedef struct trts_tensor {
  trts_str name;
  uint32_t index; /* in the model configuration's inputs; UINT32_MAX = not there */
  uint32_t dtype; /* TRTS_DTYPE_… */
  uint32_t rank;
  uint32_t flags;       /* TRTS_TENSOR_… */
  const int64_t *shape; /* rank numbers, batch dimension first when the model batches */
  uint64_t bytes;       /* sum over the parts */
  uint32_t n_parts;
  uint32_t pad;
  const trts_buf *parts; /* consecutive pieces, aligned as trts_about.align asks */
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

/* A named value. Belongs to whoever lends it. */
typedef struct trts_param {
  trts_str key;
  uint32_t kind; /* TRTS_PARAM_…; says which of text and bits counts */
  uint32_t pad;
  trts_str text; /* STRING, BYTES */
  uint64_t bits; /* the others: an int64_t, a uint64_t, 0 or 1, the bits of a double */
} trts_param;

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

/* Bits that an error carries beside its code. */
enum {
  TRTS_ERROR_RETRYABLE = 1,   /* the same request may succeed if sent again */
  TRTS_ERROR_CLIENT = 2,      /* the caller's mistake, not the model's */
  TRTS_ERROR_DEVICE_LOST = 4,
  TRTS_ERROR_MODEL_BROKEN = 8 /* the host says so in its log */
};

/* Log levels: a record is wanted when its level is at most the scope's. */
enum {
  TRTS_LEVEL_ERROR = 1,
  TRTS_LEVEL_WARNING = 2,
  TRTS_LEVEL_INFO = 3,
  TRTS_LEVEL_VERBOSE = 4,
  TRTS_LEVEL_TRACE = 5
};

/* Lends a C string; valid as long as the string is. */
static inline trts_str trts_text(const char *s) {
  trts_str text;
  text.p = s;
  text.n = (uint64_t)strlen(s);
  return text;
}

/* Non-zero = the text is this C string. */
static inline int trts_is(trts_str text, const char *s) {
  return text.n == (uint64_t)strlen(s) && (text.n == 0 || memcmp(text.p, s, (size_t)text.n) == 0);
}

#ifdef __cplusplus
}
#endif
#endif
