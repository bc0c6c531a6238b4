/* An echo that keeps every promise but one: whoever includes this defines MISDEED, and the plugin does that.
 * `trtserver plugin check` must find each out. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <trtserver/trtserver.h>
#include <unistd.h>

enum {
  NOTHING,
  DOUBLE_ANSWER,
  OMITTED_ANSWER,
  WRITES_INPUT,
  READS_RELEASED_INPUT,
  WRITES_BEYOND_OUTPUT,
  WRITES_SENT_OUTPUT,
  LEAKS_LEASE,
  LEAVES_THREAD,
  HANGS,
  CRASHES,
  CRASHES_ON_CLOSE,
  EXITS,
  IGNORES_CANCEL,
  CANCELS_WITH_WRONG_CODE,
  FORGETS_ERROR,
  FORGETS_RESPONSE,
  KEEPS_REPLY,
  KEEPS_REQUEST,
  REFUSES_WHAT_IT_ANSWERED,
  SWAPS_ROWS,
  WRONG_SHAPE,
  CHANGES_SIGNAL,
  CHANGES_DIRECTORY,
  LEAKS_DESCRIPTOR,
  LEAKS_MEMORY,
  WILD_LOG,
  USES_CLOSED_SCOPE,
};
#define DOES(misdeed) (MISDEED == (misdeed))

static const trts_host *host;
static trts_scope *scope, *closed;
static int handle;
static const trts_place cpu = {TRTS_PLACE_CPU, 0};

static const trts_about *describe(trts_plugin *plugin) {
  static const trts_str platform = {"misdeed", 7}, file = {"", 0};
  static const trts_about about = {.size = sizeof about, .name = {"misdeed", 7}, .version = {"1.0", 3},
      .platforms = &platform, .default_files = &file, .n_platforms = 1, .max_in_flight = 1};
  return (void)plugin, &about;
}
static void *for_ever(void *unused) {
  for (;;) pause();
  return unused;
}
static void on_signal(int number) { (void)number; }
static trts_error *open_plugin(trts_scope *with, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_plugin **out) {
  (void)name, (void)dir, (void)settings, (void)n_settings;
  scope = with;
  pthread_t thread;
  if (DOES(LEAVES_THREAD) && !pthread_create(&thread, NULL, for_ever, NULL)) pthread_setname_np(thread, "stays");
  if (DOES(CHANGES_SIGNAL)) signal(SIGUSR1, on_signal);
  if (DOES(CHANGES_DIRECTORY) && chdir("/")) return NULL;
  if (DOES(LEAKS_DESCRIPTOR) && dup(0) < 0) return NULL;
  if (DOES(LEAKS_MEMORY)) {
    char *leaked = malloc(256 << 10);
    memset(leaked, 1, 256 << 10);
  }
  return *out = (trts_plugin *)&handle, NULL;
}
static void close_plugin(trts_plugin *plugin) {
  (void)plugin;
  if (DOES(CRASHES_ON_CLOSE)) abort();
}
static trts_error *open_model(trts_plugin *plugin, const trts_model_desc *desc, trts_model **out) {
  (void)plugin;
  if (DOES(USES_CLOSED_SCOPE)) closed = desc->scope;
  return *out = (trts_model *)&handle, NULL;
}
static void close_model(trts_model *model) { (void)model; }
static trts_error *open_instance(trts_model *model, const trts_instance_desc *desc, trts_instance **out) {
  (void)model, (void)desc;
  if (DOES(USES_CLOSED_SCOPE) && closed != scope && desc->ordinal == 0) {
    static trts_scope *before;
    if (before) host->log(before, TRTS_LEVEL_INFO, trts_text("misdeeds.h"), 1, trts_text("from beyond"));
    before = desc->scope;
  }
  return *out = (trts_instance *)&handle, NULL;
}
static void close_instance(trts_instance *instance) { (void)instance; }

static trts_error *echo(const trts_call *call, const trts_call *from, trts_response *response, trts_buf *to) {
  if (!call->n_inputs) return host->error_new(TRTS_CODE_INVALID, 0, trts_text("an input is missing"));
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
  if (DOES(WRITES_BEYOND_OUTPUT)) *end = 1;
  if (DOES(WRITES_INPUT)) *(char *)in->parts->ptr ^= 1;
  return NULL;
}

static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  (void)instance;
  trts_error *error;
  if (DOES(HANGS)) for_ever(NULL);
  if (DOES(CRASHES)) *(volatile int *)8 = 1;
  if (DOES(EXITS)) exit(3);
  for (uint32_t i = 0; i < batch->n; i++) {
    const trts_call *call = batch->calls[i], *from = call;
    trts_response *response;
    trts_buf buf, to = {0};
    int gone = *(const volatile uint32_t *)call->cancelled != 0;
    while (DOES(IGNORES_CANCEL) && gone) pause();
    if (DOES(CANCELS_WITH_WRONG_CODE) && gone) {
      error = host->error_new(TRTS_CODE_INTERNAL, 0, trts_text("nobody waits"));
      host->error_free(host->reply_end(call->reply, error));
      host->error_free(error);
      continue;
    }
    if (DOES(OMITTED_ANSWER) && i + 1 == batch->n && batch->n > 1) continue;
    if (DOES(SWAPS_ROWS) && batch->calls[batch->n - 1 - i]->batch == call->batch)
      from = batch->calls[batch->n - 1 - i];
    if (DOES(LEAKS_LEASE)) host->error_free(host->mem_alloc(scope, cpu, 64, 64, 0, NULL, &buf));
    if (DOES(WILD_LOG)) host->log(scope, 77, trts_text("misdeeds.h"), 1, trts_text("very loud"));
    if (DOES(KEEPS_REPLY)) host->reply_retain(call->reply);
    if ((error = host->response_new(call->reply, &response))) return error;
    error = echo(call, from, response, &to);
    if (DOES(FORGETS_RESPONSE)) {
      host->error_free(host->reply_end(call->reply, error));
      host->error_free(error);
      continue;
    }
    host->error_free(host->response_send(response, TRTS_SEND_LAST, error, NULL));
    if (DOES(WRITES_SENT_OUTPUT) && to.bytes) memset(to.ptr, 9, to.bytes);
    host->error_free(error);
    if (DOES(READS_RELEASED_INPUT) && call->n_inputs && call->inputs->bytes) {
      const trts_tensor *in = call->inputs;
      host->request_release(call->request, NULL);
      handle += *(const volatile char *)in->parts->ptr;
    }
    if (DOES(DOUBLE_ANSWER)) host->error_free(host->reply_end(call->reply, NULL));
    if (DOES(KEEPS_REPLY)) host->request_release(call->request, NULL);
    if (DOES(FORGETS_ERROR)) (void)host->error_new(TRTS_CODE_INTERNAL, 0, trts_text("lost"));
  }
  if (DOES(REFUSES_WHAT_IT_ANSWERED)) return host->error_new(TRTS_CODE_INTERNAL, 0, trts_text("after all"));
  if (!DOES(KEEPS_REQUEST) && !DOES(KEEPS_REPLY)) host->error_free(host->batch_send(batch, NULL, NULL));
  return NULL;
}
const trts_plugin_table *trts_plugin_main(const trts_host *with) {
  static const trts_plugin_table table = {.size = sizeof table, .abi_major = TRTS_ABI_MAJOR,
      .abi_minor = TRTS_ABI_MINOR, .describe = describe, .plugin_open = open_plugin,
      .plugin_close = close_plugin, .model_open = open_model, .model_close = close_model,
      .instance_open = open_instance, .execute = execute, .instance_close = close_instance};
  return host = with, &table;
}
