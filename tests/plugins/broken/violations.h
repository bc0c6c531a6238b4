/* An echo backend that breaks exactly one promise: VIOLATION, which the including file defines.
 * `trtserver plugin check` must detect each. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trtserver/trtserver.h>
#include <unistd.h>

enum {
  NOTHING,
  FINISHES_TWICE,
  OMITS_RESPONSE,
  WRITES_INPUT,
  READS_RELEASED_INPUT,
  WRITES_BEYOND_OUTPUT,
  WRITES_SENT_OUTPUT,
  LEAKS_HOST_MEMORY,
  LEAVES_THREAD,
  HANGS,
  CRASHES,
  CRASHES_ON_CLOSE,
  EXITS,
  IGNORES_CANCEL,
  CANCELS_WITH_WRONG_CODE,
  FORGETS_ERROR,
  FORGETS_RESPONSE,
  KEEPS_RESPONDER,
  KEEPS_REQUEST,
  FAILS_AFTER_RESPONDING,
  SWAPS_ROWS,
  WRONG_SHAPE,
  CHANGES_SIGNAL,
  CHANGES_DIRECTORY,
  LEAKS_DESCRIPTOR,
  LEAKS_MEMORY,
  WILD_LOG,
  USES_CLOSED_SCOPE,
  FAILS_WHEN_BATCHING,
  REFUSES_TO_BATCH,
  FILLS_FIRST_ROW,
  GIVES_ROWS_OF_FIRST_REQUEST,
  SENDS_ROWS_OF_LAST_BATCH,
  REPEATS_RESPONSE,
  CRASHES_IN_BATCH,
  FAILS_ALL,
  NEEDS_ITS_THREAD,
  LOSES_OVERLAPPING_BATCH,
  RECOGNISES_MISSING_ENTRY,
  FORGETS_EVENT,
};
#define DOES(violation) (VIOLATION == (violation))

static const trts_host_table *host;
static const trts_memory_extension *memory;
static const trts_device_extension *device;
static trts_scope *scope, *closed;
static int handle, batches;
static const trts_memory cpu = {TRTS_MEMORY_CPU, 0};

static const trts_backend_info *backend_info(trts_backend *backend) {
  static const trts_str platform = {"violation", 9}, file = {"", 0};
  static const trts_extension extension = {{TRTS_EXTENSION_MODEL_PROBE, sizeof TRTS_EXTENSION_MODEL_PROBE - 1}, 1, 0};
  static const trts_backend_info info = {.size = sizeof info, .name = {"violation", 9}, .version = {"1.0", 3},
      .extensions = &extension, .n_extensions = DOES(RECOGNISES_MISSING_ENTRY), .platforms = &platform, .default_files = &file, .n_platforms = 1, .max_in_flight = DOES(LOSES_OVERLAPPING_BATCH) ? 4 : 1,
      .flags = DOES(NEEDS_ITS_THREAD) ? TRTS_BACKEND_ANY_THREAD : 0};
  return (void)backend, &info;
}
static void *pause_forever(void *unused) {
  for (;;) pause();
  return unused;
}
static void on_signal(int number) { (void)number; }
static trts_error *open_backend(trts_scope *with, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_backend **out) {
  (void)name, (void)dir, (void)settings, (void)n_settings;
  scope = with;
  pthread_t thread;
  if (DOES(LEAVES_THREAD) && !pthread_create(&thread, NULL, pause_forever, NULL)) pthread_setname_np(thread, "stays");
  if (DOES(CHANGES_SIGNAL)) signal(SIGUSR1, on_signal);
  if (DOES(CHANGES_DIRECTORY) && chdir("/")) return NULL;
  static int opened;
  if (DOES(CRASHES_IN_BATCH) && !opened++) fputs("printed long before\n", stderr);
  if (DOES(LEAKS_DESCRIPTOR) && dup(0) < 0) return NULL;
  if (DOES(LEAKS_MEMORY)) {
    char *leaked = malloc(256 << 10);
    memset(leaked, 1, 256 << 10);
  }
  return *out = (trts_backend *)&handle, NULL;
}
static void close_backend(trts_backend *backend) {
  (void)backend;
  if (DOES(CRASHES_ON_CLOSE)) abort();
}
static trts_error *open_model(trts_backend *backend, const trts_model_desc *desc, trts_model **out) {
  (void)backend;
  if (DOES(USES_CLOSED_SCOPE)) closed = desc->scope;
  batches = desc->max_batch_size > 0;
  if (DOES(REFUSES_TO_BATCH) && batches)
    return host->error_new(TRTS_CODE_UNSUPPORTED, 0, trts_text("takes one request at a time"));
  return *out = (trts_model *)&handle, NULL;
}
static void close_model(trts_model *model) { (void)model; }
/* A request that a thread responds to. A second one that comes before the thread does replaces it. */
struct job {
  trts_responder *responder;
  uint32_t dtype, rank;
  int64_t shape[8];
  uint64_t bytes;
  char data[4096];
};
struct state {
  pthread_t own;
  struct job pending;
};
static trts_error *open_instance(trts_model *model, const trts_instance_desc *desc, trts_instance **out) {
  (void)model, (void)desc;
  if (DOES(USES_CLOSED_SCOPE) && closed != scope && desc->ordinal == 0) {
    static trts_scope *before;
    if (before) host->log(before, TRTS_LEVEL_INFO, trts_text("violations.h"), 1, trts_text("after close"));
    before = desc->scope;
  }
  struct state *state = calloc(1, sizeof *state);
  state->own = pthread_self();
  return *out = (trts_instance *)state, NULL;
}
static void close_instance(trts_instance *instance) { free(instance); }

static trts_error *echo(const trts_request *request, const trts_request *from, trts_response *response, trts_buf *to) {
  if (!request->n_inputs) return host->error_new(TRTS_CODE_INVALID, 0, trts_text("an input is missing"));
  const trts_tensor *in = from->inputs;
  int64_t shape[8] = {0};
  if (in->rank > 8) return host->error_new(TRTS_CODE_INVALID, 0, trts_text("too many dimensions"));
  memcpy(shape, in->shape, in->rank * sizeof *shape);
  uint32_t rank = in->rank;
  if (DOES(WRONG_SHAPE)) shape[rank++] = 1;
  trts_error *error =
      host->output_alloc(response, trts_text("OUTPUT0"), in->dtype, rank, shape, in->bytes, cpu, to);
  if (error || !to->bytes) return error;
  char *end = to->ptr;
  for (uint32_t i = 0; i < in->n_parts; end += in->parts[i++].bytes)
    memcpy(end, in->parts[i].ptr, in->parts[i].bytes);
  if (DOES(FILLS_FIRST_ROW) && batches && shape[0] > 1) {
    uint64_t row = to->bytes / (uint64_t)shape[0];
    memset((char *)to->ptr + row, 0, to->bytes - row);
  }
  static char last[1 << 16];
  if (DOES(REPEATS_RESPONSE) && to->bytes <= sizeof last) {
    char now[sizeof last];
    memcpy(now, to->ptr, to->bytes);
    memcpy(to->ptr, last, to->bytes);
    memcpy(last, now, to->bytes);
  }
  /* The first rows are those of an earlier, larger batch. */
  static uint64_t size;
  if (DOES(SENDS_ROWS_OF_LAST_BATCH) && batches && to->bytes <= sizeof last) {
    if (size > to->bytes) memcpy(to->ptr, last, to->bytes);
    memcpy(last, to->ptr, size = to->bytes);
  }
  if (DOES(WRITES_BEYOND_OUTPUT)) *end = 1;
  if (DOES(WRITES_INPUT)) *(char *)in->parts->ptr ^= 1;
  return NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *respond_later(void *of) {
  struct state *state = of;
  usleep(10000);
  pthread_mutex_lock(&lock);
  struct job job = state->pending;
  state->pending.responder = NULL;
  pthread_mutex_unlock(&lock);
  trts_response *response;
  trts_buf to;
  if (!job.responder || host->response_new(job.responder, &response)) return NULL;
  trts_error *error =
      host->output_alloc(response, trts_text("OUTPUT0"), job.dtype, job.rank, job.shape, job.bytes, cpu, &to);
  if (!error && to.bytes) memcpy(to.ptr, job.data, job.bytes);
  host->error_free(host->response_send(response, TRTS_SEND_FINAL, error, NULL));
  host->error_free(error);
  host->responder_release(job.responder);
  return NULL;
}
static int keep(struct state *state, const trts_request *request) {
  const trts_tensor *in = request->inputs;
  pthread_t thread;
  if (!request->n_inputs || in->rank > 8 || in->n_parts != 1 || in->bytes > sizeof state->pending.data) return 0;
  pthread_mutex_lock(&lock);
  struct job *job = &state->pending;
  job->responder = request->responder, job->dtype = in->dtype, job->rank = in->rank, job->bytes = in->bytes;
  memcpy(job->shape, in->shape, in->rank * sizeof *in->shape);
  memcpy(job->data, in->parts->ptr, in->bytes);
  pthread_mutex_unlock(&lock);
  host->responder_detach(request->responder);
  host->request_release(request->handle, NULL);
  if (!pthread_create(&thread, NULL, respond_later, state)) pthread_detach(thread);
  return 1;
}

static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  struct state *state = (struct state *)instance;
  if (DOES(NEEDS_ITS_THREAD) && !pthread_equal(state->own, pthread_self()))
    return host->error_new(TRTS_CODE_INTERNAL, 0, trts_text("the wrong thread"));
  if (DOES(LOSES_OVERLAPPING_BATCH) && batch->n_requests == 1 && keep(state, batch->requests[0])) return NULL;
  trts_error *error;
  if (DOES(HANGS)) pause_forever(NULL);
  if (DOES(CRASHES)) *(volatile int *)8 = 1;
  if (DOES(EXITS)) exit(3);
  if (DOES(FAILS_ALL)) return host->error_new(TRTS_CODE_INTERNAL, 0, trts_text("out of order"));
  if (DOES(FAILS_WHEN_BATCHING) && batches)
    return host->error_new(TRTS_CODE_INTERNAL, 0, trts_text("expected one dimension"));
  if (DOES(CRASHES_IN_BATCH) && batch->n_requests > 1) *(volatile int *)8 = 1;
  for (uint32_t i = 0; i < batch->n_requests; i++) {
    const trts_request *request = batch->requests[i], *from = request;
    trts_response *response;
    trts_buf buf, to = {0};
    int cancelled = *(const volatile uint32_t *)request->cancelled != 0;
    while (DOES(IGNORES_CANCEL) && cancelled) pause();
    if (DOES(CANCELS_WITH_WRONG_CODE) && cancelled) {
      error = host->error_new(TRTS_CODE_INTERNAL, 0, trts_text("the client disconnected"));
      host->error_free(host->responder_finish(request->responder, error));
      host->error_free(error);
      continue;
    }
    if (DOES(OMITS_RESPONSE) && i + 1 == batch->n_requests && batch->n_requests > 1) continue;
    if (DOES(SWAPS_ROWS) && batch->requests[batch->n_requests - 1 - i]->batch_size == request->batch_size)
      from = batch->requests[batch->n_requests - 1 - i];
    if (DOES(GIVES_ROWS_OF_FIRST_REQUEST) && batch->requests[0]->batch_size == request->batch_size)
      from = batch->requests[0];
    if (DOES(LEAKS_HOST_MEMORY)) host->error_free(memory->memory_alloc(scope, cpu, 64, 64, 0, NULL, &buf));
    if (DOES(FORGETS_EVENT)) {
      trts_event *event;
      host->error_free(device->event_new(scope, 0, &event));
    }
    if (DOES(WILD_LOG)) host->log(scope, 77, trts_text("violations.h"), 1, trts_text("very loud"));
    if (DOES(KEEPS_RESPONDER)) host->responder_detach(request->responder);
    if ((error = host->response_new(request->responder, &response))) return error;
    error = echo(request, from, response, &to);
    if (DOES(FORGETS_RESPONSE)) {
      host->error_free(host->responder_finish(request->responder, error));
      host->error_free(error);
      continue;
    }
    host->error_free(host->response_send(response, TRTS_SEND_FINAL, error, NULL));
    if (DOES(WRITES_SENT_OUTPUT) && to.bytes) memset(to.ptr, 9, to.bytes);
    host->error_free(error);
    if (DOES(READS_RELEASED_INPUT) && request->n_inputs && request->inputs->bytes) {
      const trts_tensor *in = request->inputs;
      host->request_release(request->handle, NULL);
      handle += *(const volatile char *)in->parts->ptr;
    }
    if (DOES(FINISHES_TWICE)) host->error_free(host->responder_finish(request->responder, NULL));
    if (DOES(KEEPS_RESPONDER)) host->request_release(request->handle, NULL);
    if (DOES(FORGETS_ERROR)) (void)host->error_new(TRTS_CODE_INTERNAL, 0, trts_text("lost"));
  }
  if (DOES(FAILS_AFTER_RESPONDING)) return host->error_new(TRTS_CODE_INTERNAL, 0, trts_text("after all"));
  if (!DOES(KEEPS_REQUEST) && !DOES(KEEPS_RESPONDER)) host->error_free(host->batch_finish(batch, NULL, NULL));
  return NULL;
}
static trts_error *model_probe(const trts_probe_desc *desc, uint32_t *found) {
  *found = desc->n_entries + 3;
  return NULL;
}
static const void *get_extension(trts_str name, uint32_t version) {
  static const trts_model_probe_extension probes = {sizeof probes, model_probe};
  const int is_probe = name.n == strlen(TRTS_EXTENSION_MODEL_PROBE) && !memcmp(name.p, TRTS_EXTENSION_MODEL_PROBE, name.n);
  return DOES(RECOGNISES_MISSING_ENTRY) && is_probe && version == 1 ? &probes : NULL;
}
const trts_backend_table *trts_backend_main(const trts_host_table *with) {
  static const trts_backend_table table = {.size = sizeof table, .abi_major = TRTS_ABI_MAJOR,
      .abi_minor = TRTS_ABI_MINOR, .backend_info = backend_info, .backend_open = open_backend,
      .backend_close = close_backend, .model_open = open_model, .model_close = close_model,
      .instance_open = open_instance, .execute = execute, .instance_close = close_instance, .get_extension = get_extension};
  host = with;
  memory = with->get_extension(trts_text(TRTS_EXTENSION_MEMORY), TRTS_EXTENSION_MEMORY_VERSION);
  device = with->get_extension(trts_text(TRTS_EXTENSION_DEVICE), TRTS_EXTENSION_DEVICE_VERSION);
  return &table;
}
