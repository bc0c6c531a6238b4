/* Breaks the rules about handles, sizes and places in every call, and answers well in between: each
 * misdeed must come back as an error. The first that does not is named in the answer. */
#include <trtserver/trtserver.h>

static const trts_host *host;
static int handle;
static const trts_place cpu = {TRTS_PLACE_CPU, 0};
/* Handles of the call before this one. */
static trts_request *old_request;
static trts_reply *old_reply;
static trts_response *old_response;

static const trts_about *describe(trts_plugin *plugin) {
  static const trts_str platform = {"misuse", 6}, file = {"", 0};
  static const trts_about about = {.size = sizeof about, .name = {"misuse", 6}, .version = {"1.0", 3},
      .platforms = &platform, .default_files = &file, .n_platforms = 1, .max_in_flight = 1};
  return (void)plugin, &about;
}
static trts_scope *scope_of_plugin;
static trts_error *open_plugin(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_plugin **out) {
  (void)name, (void)dir, (void)settings, (void)n_settings, scope_of_plugin = scope;
  return *out = (trts_plugin *)&handle, NULL;
}
static trts_error *open_model(trts_plugin *plugin, const trts_model_desc *desc, trts_model **out) {
  (void)plugin, (void)desc;
  return *out = (trts_model *)&handle, NULL;
}
static trts_error *open_instance(trts_model *model, const trts_instance_desc *desc, trts_instance **out) {
  (void)model, (void)desc;
  return *out = (trts_instance *)&handle, NULL;
}
static void close_plugin(trts_plugin *plugin) {
  (void)plugin;
  host->log(scope_of_plugin, TRTS_LEVEL_INFO, trts_text("misuse.c"), 1, trts_text("misuse was closed"));
}
static void close_model(trts_model *model) { (void)model; }
static void close_instance(trts_instance *instance) { (void)instance; }

static const char *fault;
static void refused(const char *misdeed, trts_error *error) {
  if (!error && !fault) fault = misdeed;
  host->error_free(error);
}
static void allowed(const char *deed, trts_error *error) {
  if (error && !fault) fault = deed;
  host->error_free(error);
}

static void misbehave(const trts_call *call) {
  trts_response *response, *second;
  const int64_t one[2] = {1, 1}, wild[2] = {INT64_MAX, INT64_MAX};
  const trts_str out = trts_text("OUTPUT0");
  trts_buf buf, huge = {&handle, UINT64_MAX / 2 + 1, cpu, NULL, 0}, parts[2] = {huge, huge};
  if (old_reply) {
    host->request_release(old_request, NULL);
    host->reply_retain(old_reply);
    refused("a response on the last call's reply", host->response_new(old_reply, &second));
    refused("the last call's reply ended", host->reply_end(old_reply, NULL));
    refused("the last call's response sent", host->response_send(old_response, TRTS_SEND_LAST, NULL, NULL));
  }
  refused("a response to nowhere", host->response_new(call->reply, NULL));
  refused("a null reply", host->response_new(NULL, &response));
  host->reply_release(call->reply);
  allowed("a response", host->response_new(call->reply, &response));
  refused("two responses", host->response_new(call->reply, &second));
  refused("a huge rank", host->output_alloc(response, out, TRTS_DTYPE_STRING, UINT32_MAX, one, 4, cpu, &buf));
  refused("no shape", host->output_alloc(response, out, TRTS_DTYPE_STRING, 2, NULL, 4, cpu, &buf));
  refused("a wild shape", host->output_alloc(response, out, TRTS_DTYPE_STRING, 2, wild, 4, cpu, &buf));
  refused("all memory", host->output_alloc(response, out, TRTS_DTYPE_STRING, 2, one, UINT64_MAX, cpu, &buf));
  refused("half of it", host->output_alloc(response, out, TRTS_DTYPE_STRING, 2, one, UINT64_MAX / 2 - 63, cpu, &buf));
  refused("huge parts", host->output_adopt(response, out, TRTS_DTYPE_STRING, 2, one, parts, 2, NULL, NULL));
  huge.ptr = NULL, huge.bytes = 4;
  refused("a null part", host->output_adopt(response, out, TRTS_DTYPE_STRING, 2, one, &huge, 1, NULL, NULL));
  refused("lots of memory", host->mem_alloc(scope_of_plugin, cpu, UINT64_MAX / 4, 64, 0, NULL, &buf));
  static const char text[5] = {1, 0, 0, 0, 'x'};
  trts_buf good = {(void *)(uintptr_t)text, sizeof text, cpu, NULL, 0};
  allowed("static memory", host->output_adopt(response, out, TRTS_DTYPE_STRING, 2, one, &good, 1, NULL, NULL));
  trts_error *failure = fault ? host->error_new(TRTS_CODE_INTERNAL, 0, trts_text(fault)) : NULL;
  allowed("the answer", host->response_send(response, TRTS_SEND_LAST, failure, NULL));
  host->error_free(failure);
  refused("an answer sent twice", host->response_send(response, TRTS_SEND_LAST, NULL, NULL));
  host->response_drop(response);
  refused("an end after the end", host->reply_end(call->reply, NULL));
  old_request = call->request, old_reply = call->reply, old_response = response;
  host->request_release(call->request, NULL);
  host->request_release(old_request, NULL);
}
static void misbehave_together(const trts_batch *batch) {
  const int64_t one[2] = {1, 1}, two[2] = {2, 1};
  const trts_str out = trts_text("OUTPUT0"), unknown = trts_text("NOWHERE");
  trts_buf buf;
  trts_response *response;
  refused("nothing gathered", host->gather(NULL, 0, cpu, TRTS_GATHER_ROWS, NULL, &buf));
  refused("gathered to nowhere", host->gather(batch, 0, cpu, TRTS_GATHER_ROWS, NULL, NULL));
  refused("an input beyond the last", host->gather(batch, UINT32_MAX, cpu, TRTS_GATHER_ROWS, NULL, &buf));
  refused("an unknown mode", host->gather(batch, 0, cpu, 99, NULL, &buf));
  allowed("an input gathered", host->gather(batch, 0, cpu, TRTS_GATHER_ROWS, NULL, &buf));
  refused("nothing scattered", host->scatter_alloc(NULL, out, TRTS_DTYPE_STRING, 2, one, 5, cpu, &buf));
  refused("scattered to nowhere", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, one, 5, cpu, NULL));
  refused("an unknown output", host->scatter_alloc(batch, unknown, TRTS_DTYPE_STRING, 2, one, 5, cpu, &buf));
  refused("too many rows", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, two, 5, cpu, &buf));
  refused("no shape", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, NULL, 5, cpu, &buf));
  refused("all memory", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, one, UINT64_MAX, cpu, &buf));
  refused("nothing donated", host->scatter_adopt(batch, out, TRTS_DTYPE_STRING, 2, one, NULL, NULL, NULL));
  allowed("a response", host->response_new(batch->calls[0]->reply, &response));
  refused("scattered meanwhile", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, one, 5, cpu, &buf));
  host->response_drop(response);
  allowed("a block", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, one, 5, cpu, &buf));
  refused("a block twice", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, one, 5, cpu, &buf));
}
static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  (void)instance;
  /* A response that is begun and forgotten, in every other call. */
  trts_response *forgotten;
  if (batch->id % 2 && !host->response_new(batch->calls[0]->reply, &forgotten)) return NULL;
  misbehave_together(batch);
  misbehave(batch->calls[0]);
  allowed("a batch sent", host->batch_send(batch, NULL, NULL));
  allowed("a batch sent again", host->batch_send(batch, NULL, NULL));
  refused("a null batch", host->batch_send(NULL, NULL, NULL));
  return NULL;
}
const trts_plugin_table *trts_plugin_main(const trts_host *with) {
  static const trts_plugin_table table = {.size = sizeof table, .abi_major = TRTS_ABI_MAJOR,
      .abi_minor = TRTS_ABI_MINOR, .describe = describe, .plugin_open = open_plugin,
      .plugin_close = close_plugin, .model_open = open_model, .model_close = close_model,
      .instance_open = open_instance, .execute = execute, .instance_close = close_instance};
  return host = with, &table;
}
