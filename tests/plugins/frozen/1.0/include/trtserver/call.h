/* What execute gets: a batch of calls, each a flat read-only view of one request. */
#ifndef TRTSERVER_CALL_H
#define TRTSERVER_CALL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of trts_call.flags */
enum {
  TRTS_CALL_SEQUENCE_START = 1,
  TRTS_CALL_SEQUENCE_END = 2,
  TRTS_CALL_WARMUP = 4,
  TRTS_CALL_TRACED = 8,
  TRTS_CALL_STREAMING = 16 /* the caller can take several responses */
};

/* An output that is wanted: by the caller or, behind those, by the host (a sequence's state). The host's,
 * valid as long as its call. */
typedef struct trts_wanted {
  trts_str name;
  uint32_t index;   /* in the model configuration's outputs; UINT32_MAX = not there */
  uint32_t classes; /* not 0: the caller gets this many top classes; deliver the tensor all the same */
} trts_wanted;

/* One request. The host's; it and all it points at stay put until request_release of its request.
 * Any thread may read it. */
typedef struct trts_call {
  uint64_t size; /* sizeof, as the host knows it */
  trts_request *request;
  trts_reply *reply; /* borrowed: reply_retain to keep it past execute */
  trts_str id;
  trts_str sequence_text; /* correlation id as text; empty when it is a number or absent */
  uint64_t sequence;      /* correlation id as a number; 0 = none */
  uint32_t flags;         /* TRTS_CALL_… */
  uint32_t batch;         /* rows; 1 for a model without batch dimension */
  uint64_t priority;
  uint64_t received_ns; /* all times: CLOCK_MONOTONIC */
  uint64_t queued_ns;
  uint64_t deadline_ns;      /* 0 = none */
  const uint32_t *cancelled; /* read atomically: not 0 = nobody waits any more; valid while the reply is held */
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t n_params;
  uint32_t pad;
  const trts_tensor *inputs;
  const trts_wanted *outputs;
  const trts_param *params;
  uint64_t reserved[4];
} trts_call;

/* The unit of work. The host's; the array is valid during execute, each call until its release. Only
 * the four times are the plugin's to write, during execute. */
typedef struct trts_batch {
  uint64_t size;
  uint64_t id;   /* for traces */
  uint32_t n;    /* calls */
  uint32_t rows; /* sum of the calls' rows */
  const trts_call *const *calls;
  uint64_t t_start;   /* begin of work; a time left 0 the host measures around execute */
  uint64_t t_compute; /* inputs are ready */
  uint64_t t_output;  /* outputs are being made */
  uint64_t t_end;
  uint64_t reserved[4];
} trts_batch;

#ifdef __cplusplus
}
#endif
#endif
