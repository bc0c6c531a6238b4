/* SPDX-License-Identifier: Apache-2.0 */
/* What execute receives: a batch of requests, each a flat read-only view. */
#ifndef TRTSERVER_REQUEST_H
#define TRTSERVER_REQUEST_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of trts_request.flags */
enum {
  TRTS_REQUEST_SEQUENCE_START = 1,
  TRTS_REQUEST_SEQUENCE_END = 2,
  TRTS_REQUEST_WARMUP = 4,
  TRTS_REQUEST_TRACED = 8,
  TRTS_REQUEST_STREAMING = 16 /* the client accepts several responses */
};

/* An output requested by the client or, after those, by the host (state of a sequence). Owned by the
 * host; valid as long as its request. */
typedef struct trts_requested_output {
  trts_str name;    /* as in the model configuration */
  uint32_t index;   /* in the model configuration's outputs; UINT32_MAX = not listed there */
  uint32_t classes; /* not 0: the host sends this many top classes; produce the tensor all the same */
} trts_requested_output;

/* One request: a read-only view, and the two handles of the request. Owned by the host. The view and all
 * it points at stay valid and unmoved until request_release of its handle. Any thread may read it. */
typedef struct trts_request {
  uint64_t size; /* sizeof, as the host was built */
  trts_request_handle *handle; /* input side; released exactly once, with request_release or batch_finish */
  trts_responder *responder;   /* response side; borrowed: responder_detach to use it after execute */
  trts_str id;                 /* that the client gave; may be empty */
  trts_str correlation_id_string; /* empty when the correlation id is a number or absent */
  uint64_t correlation_id;        /* 0 = none */
  uint32_t flags;                 /* TRTS_REQUEST_… */
  uint32_t batch_size;            /* rows of this request; 1 for a model without batch dimension */
  uint64_t priority;         /* level, 1 is the highest; 0 = the model's default */
  uint64_t received_ns;      /* when the request had arrived */
  uint64_t queued_ns;        /* when it entered the queue */
  uint64_t deadline_ns;      /* 0 = none */
  const uint32_t *cancelled; /* load atomically: not 0 = cancelled; valid as long as the responder */
  uint32_t n_inputs;
  uint32_t n_requested_outputs;
  uint32_t n_params;
  uint32_t pad;
  const trts_tensor *inputs; /* of the client, in the order of the configuration, then those that the host adds */
  const trts_requested_output *requested_outputs; /* that responses should have */
  const trts_param *params;                       /* that the client gave */
  uint64_t timeout_us; /* what the client gave as the longest time in the queue, in microseconds; 0 = nothing */
  uint64_t reserved[3];
} trts_request;

/* The unit of execution. Owned by the host. The array is valid during execute, each request until its
 * release. The backend may write the four times during execute; the host measures a time left 0. */
typedef struct trts_batch {
  uint64_t size;
  uint64_t id; /* for traces */
  uint32_t n_requests;
  uint32_t rows; /* sum of the requests' batch sizes */
  const trts_request *const *requests; /* in the order of their rows */
  uint64_t exec_start_ns;    /* execute begins */
  uint64_t compute_start_ns; /* inputs are ready */
  uint64_t compute_end_ns;   /* outputs are being written */
  uint64_t exec_end_ns;      /* outputs are written */
  uint64_t reserved[4];
} trts_batch;

#ifdef __cplusplus
}
#endif
#endif
