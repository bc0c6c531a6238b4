/* SPDX-License-Identifier: Apache-2.0 */
/* The extension trts.inference: a backend sends requests to other models of the server, asks for their status, loads
 * and unloads them. Offered by hosts that serve the models of a repository. */
#ifndef TRTSERVER_INFERENCE_H
#define TRTSERVER_INFERENCE_H

#include "extensions.h"
#include "request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Name of the extension for nested requests: trts_inference_extension. */
#define TRTS_EXTENSION_INFERENCE "trts.inference"
/* Its newest version. */
#define TRTS_EXTENSION_INFERENCE_VERSION 1u

/* A nested request that was accepted. Owned by the backend until nested_release. */
typedef struct trts_nested trts_nested;

/* An input of a nested request. Read during infer only: the host copies shape and data. */
typedef struct trts_nested_input {
  trts_str name;  /* as the model's configuration calls it */
  uint32_t dtype; /* TRTS_DTYPE_… */
  uint32_t rank;  /* number of dimensions */
  const int64_t *shape; /* batch dimension first when the model batches */
  /* Consecutive pieces of the tensor, in CPU or pinned memory; event and memory handle are ignored. */
  const trts_buf *parts;
  uint32_t n_parts;
  uint32_t pad;
} trts_nested_input;

/* A request to a model of the server. Read during infer only. */
typedef struct trts_nested_request {
  uint64_t size; /* sizeof, as the backend was built */
  trts_str model;  /* name of the model */
  int64_t version; /* below 0 = the version that clients reach without a number */
  trts_str id;     /* of the request, for logs; may be empty */
  trts_str correlation_id_string; /* empty when the correlation id is a number or absent */
  uint64_t correlation_id;        /* 0 = none */
  uint64_t priority;              /* 0 = the model's default */
  uint64_t timeout_us;  /* longest time in the queue, where the model's policy allows it; 0 = the model's default */
  uint64_t deadline_ns; /* 0 = no deadline */
  uint32_t flags;       /* TRTS_REQUEST_SEQUENCE_START, TRTS_REQUEST_SEQUENCE_END */
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t n_params;
  const trts_nested_input *inputs; /* in any order */
  const trts_str *outputs;         /* names of the requested outputs; none = all */
  const trts_param *params;        /* for the model */
  uint64_t reserved[4];
} trts_nested_request;

/* An output of a response. */
typedef struct trts_nested_output {
  trts_str name;        /* as the model's configuration calls it */
  uint32_t dtype;       /* TRTS_DTYPE_… */
  uint32_t rank;        /* number of dimensions */
  const int64_t *shape; /* batch dimension first when the model batches */
  trts_buf data;        /* in CPU memory */
} trts_nested_output;

/* A response to a nested request. Valid during the call of the handler. */
typedef struct trts_nested_response {
  uint64_t size;
  const trts_error *error;           /* why the request failed; borrowed. An error is the last response. */
  const trts_nested_output *outputs; /* in requested order; the last response of a decoupled model may have none */
  const trts_param *params;          /* of the response */
  uint32_t n_outputs;
  uint32_t n_params;
  uint32_t last; /* not 0: the handler is not called again */
  uint32_t pad;
  int64_t version; /* which has executed the request; below 0 when none has */
  uint64_t reserved[3];
} trts_nested_response;

/* Receives the responses of a nested request. */
typedef struct trts_nested_handler {
  void (*func)(void *user, const trts_nested_response *response); /* called once for each response */
  void *user; /* passed to func */
} trts_nested_handler;

/* What is known of a model version. */
typedef struct trts_model_status {
  uint64_t size;
  int64_t version;    /* the version that a request would reach, 0 if none serves */
  uint32_t ready;     /* not 0: a request would be executed now */
  uint32_t decoupled; /* not 0: a request gets any number of responses */
  uint64_t reserved[4];
} trts_model_status;

/* Nested inference. All entries may be called from any thread, also during execute. */
typedef struct trts_inference_extension {
  uint64_t size; /* sizeof, as the host was built */
  /* Sends a request to a model of the server. After an error the handler is never called. After success it is called
   * once for each response, until one is the last, on a thread of the host that serves the handlers of this scope one
   * after another: never on the calling thread, possibly before this returns. It must not block, and must not wait
   * for another nested request.
   *
   * A nested request counts like one of a client: in the queue, its limits, and the statistics. A backend that waits
   * for the responses in execute keeps its instance busy: a model that calls itself detaches the responder and
   * returns.
   *
   * Before the host closes the model or instance of the scope, it cancels the scope's requests; their handlers receive
   * TRTS_CODE_CANCELLED as the last response before model_close or instance_close is called, and infer fails from then
   * on.
   *
   * `out`, if not null, receives a handle for nested_cancel; free it with nested_release. */
  trts_error *(*infer)(trts_scope *scope, const trts_nested_request *request, trts_nested_handler handler,
                       trts_nested **out);
  /* Cancels the request, as a client that disconnects. The handler still receives a last response. */
  void (*nested_cancel)(const trts_nested *nested);
  /* Takes ownership of the handle; the request goes on. Null is allowed. */
  void (*nested_release)(trts_nested *nested);
  /* Writes the status of a version of a model; `version` as in the request. TRTS_CODE_NOT_FOUND = there is no such
   * model or version. */
  trts_error *(*model_status)(trts_scope *scope, trts_str model, int64_t version, trts_model_status *out);
  /* Loads a model, or loads it again, and waits for the end. Parameters as in the load request of v2: `config`
   * (STRING) and `file:PATH` (BYTES). TRTS_CODE_UNAVAILABLE unless the server's control mode is explicit. The caller's
   * own model is refused. */
  trts_error *(*model_load)(trts_scope *scope, trts_str model, const trts_param *params, uint32_t n_params);
  /* Unloads a model; with `dependents` not 0 also the models of its steps. Otherwise as model_load. */
  trts_error *(*model_unload)(trts_scope *scope, trts_str model, uint32_t dependents);
} trts_inference_extension;

#ifdef __cplusplus
}
#endif
#endif
