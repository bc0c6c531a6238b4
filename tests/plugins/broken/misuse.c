/* Breaks the rules about handles, sizes and memory in every request, and responds correctly in between: each
 * misuse must return an error. The first that does not is named in the response. */
#include <trtserver/trtserver.h>

static const trts_host_table *host;
static const trts_memory_extension *memory;
static int handle;
static const trts_memory cpu = {TRTS_MEMORY_CPU, 0};
/* Handles of the previous request. */
static trts_request_handle *old_request;
static trts_responder *old_responder;
static trts_response *old_response;

static const trts_backend_info *backend_info(trts_backend *backend) {
  static const trts_str platform = {"misuse", 6}, file = {"", 0};
  static const trts_backend_info info = {.size = sizeof info, .name = {"misuse", 6}, .version = {"1.0", 3},
      .platforms = &platform, .default_files = &file, .n_platforms = 1, .max_in_flight = 1};
  return (void)backend, &info;
}
static trts_scope *scope_of_backend;
static trts_error *open_backend(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_backend **out) {
  (void)name, (void)dir, (void)settings, (void)n_settings, scope_of_backend = scope;
  return *out = (trts_backend *)&handle, NULL;
}
static trts_error *open_model(trts_backend *backend, const trts_model_desc *desc, trts_model **out) {
  (void)backend, (void)desc;
  return *out = (trts_model *)&handle, NULL;
}
static trts_error *open_instance(trts_model *model, const trts_instance_desc *desc, trts_instance **out) {
  (void)model, (void)desc;
  return *out = (trts_instance *)&handle, NULL;
}
static void close_backend(trts_backend *backend) {
  (void)backend;
  host->log(scope_of_backend, TRTS_LEVEL_INFO, trts_text("misuse.c"), 1, trts_text("misuse was closed"));
}
static void close_model(trts_model *model) { (void)model; }
static void close_instance(trts_instance *instance) { (void)instance; }

static const char *fault;
static void refused(const char *misuse, trts_error *error) {
  if (!error && !fault) fault = misuse;
  host->error_free(error);
}
static void allowed(const char *use, trts_error *error) {
  if (error && !fault) fault = use;
  host->error_free(error);
}

static void absent(const char *misuse, const void *extension) {
  if (extension && !fault) fault = misuse;
}

static void misuse_request(const trts_request *request) {
  trts_response *response, *second;
  const int64_t one[2] = {1, 1}, wild[2] = {INT64_MAX, INT64_MAX};
  const trts_str out = trts_text("OUTPUT0");
  trts_buf buf, huge = {&handle, UINT64_MAX / 2 + 1, cpu, NULL, 0}, parts[2] = {huge, huge};
  if (old_responder) {
    host->request_release(old_request, NULL);
    host->responder_detach(old_responder);
    refused("a response on the last request's responder", host->response_new(old_responder, &second));
    refused("the last request's responder finished", host->responder_finish(old_responder, NULL));
    refused("the last request's response sent", host->response_send(old_response, TRTS_SEND_FINAL, NULL, NULL));
  }
  refused("a response without an out pointer", host->response_new(request->responder, NULL));
  refused("a null responder", host->response_new(NULL, &response));
  host->responder_release(request->responder);
  allowed("a response", host->response_new(request->responder, &response));
  refused("two responses", host->response_new(request->responder, &second));
  refused("a huge rank", host->output_alloc(response, out, TRTS_DTYPE_STRING, UINT32_MAX, one, 4, cpu, &buf));
  refused("no shape", host->output_alloc(response, out, TRTS_DTYPE_STRING, 2, NULL, 4, cpu, &buf));
  refused("a wild shape", host->output_alloc(response, out, TRTS_DTYPE_STRING, 2, wild, 4, cpu, &buf));
  refused("all memory", host->output_alloc(response, out, TRTS_DTYPE_STRING, 2, one, UINT64_MAX, cpu, &buf));
  refused("half of it", host->output_alloc(response, out, TRTS_DTYPE_STRING, 2, one, UINT64_MAX / 2 - 63, cpu, &buf));
  refused("huge parts", host->output_adopt(response, out, TRTS_DTYPE_STRING, 2, one, parts, 2, NULL, NULL));
  huge.ptr = NULL, huge.bytes = 4;
  refused("a null part", host->output_adopt(response, out, TRTS_DTYPE_STRING, 2, one, &huge, 1, NULL, NULL));
  refused("lots of memory", memory->memory_alloc(scope_of_backend, cpu, UINT64_MAX / 4, 64, 0, NULL, &buf));
  static const char text[5] = {1, 0, 0, 0, 'x'};
  trts_buf good = {(void *)(uintptr_t)text, sizeof text, cpu, NULL, 0};
  allowed("static memory", host->output_adopt(response, out, TRTS_DTYPE_STRING, 2, one, &good, 1, NULL, NULL));
  trts_error *failure = fault ? host->error_new(TRTS_CODE_INTERNAL, 0, trts_text(fault)) : NULL;
  allowed("the response", host->response_send(response, TRTS_SEND_FINAL, failure, NULL));
  host->error_free(failure);
  refused("a response sent twice", host->response_send(response, TRTS_SEND_FINAL, NULL, NULL));
  host->response_free(response);
  refused("a request finished twice", host->responder_finish(request->responder, NULL));
  old_request = request->handle, old_responder = request->responder, old_response = response;
  host->request_release(request->handle, NULL);
  host->request_release(old_request, NULL);
}
static void misuse_extensions(void) {
  absent("an unknown extension", host->get_extension(trts_text("trts.unknown"), 1));
  absent("an extension without a name", host->get_extension((trts_str){NULL, 0}, 1));
  absent("a prefix of a name", host->get_extension(trts_text("trts.mem"), 1));
  absent("a newer version", host->get_extension(trts_text(TRTS_EXTENSION_MEMORY), TRTS_EXTENSION_MEMORY_VERSION + 1));
  if (!memory && !fault) fault = "no memory extension";
}
static void misuse_batch(const trts_batch *batch) {
  const int64_t one[2] = {1, 1}, two[2] = {2, 1};
  const trts_str out = trts_text("OUTPUT0"), unknown = trts_text("NOWHERE");
  trts_buf buf;
  trts_response *response;
  refused("gather without a batch", host->gather(NULL, 0, cpu, TRTS_GATHER_ROWS, NULL, &buf));
  refused("gather without an out pointer", host->gather(batch, 0, cpu, TRTS_GATHER_ROWS, NULL, NULL));
  refused("an input beyond the last", host->gather(batch, UINT32_MAX, cpu, TRTS_GATHER_ROWS, NULL, &buf));
  refused("an unknown mode", host->gather(batch, 0, cpu, 99, NULL, &buf));
  allowed("an input gathered", host->gather(batch, 0, cpu, TRTS_GATHER_ROWS, NULL, &buf));
  refused("scatter without a batch", host->scatter_alloc(NULL, out, TRTS_DTYPE_STRING, 2, one, 5, cpu, &buf));
  refused("scatter without an out pointer", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, one, 5, cpu, NULL));
  refused("an unknown output", host->scatter_alloc(batch, unknown, TRTS_DTYPE_STRING, 2, one, 5, cpu, &buf));
  refused("too many rows", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, two, 5, cpu, &buf));
  refused("no shape", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, NULL, 5, cpu, &buf));
  refused("all memory", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, one, UINT64_MAX, cpu, &buf));
  refused("adopt without a buffer", host->scatter_adopt(batch, out, TRTS_DTYPE_STRING, 2, one, NULL, NULL, NULL));
  allowed("a response", host->response_new(batch->requests[0]->responder, &response));
  refused("scatter while a response exists", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, one, 5, cpu, &buf));
  host->response_free(response);
  allowed("a block", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, one, 5, cpu, &buf));
  refused("a block twice", host->scatter_alloc(batch, out, TRTS_DTYPE_STRING, 2, one, 5, cpu, &buf));
}
static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  (void)instance;
  /* A response that is created and never sent, in every other batch. */
  trts_response *forgotten;
  if (batch->id % 2 && !host->response_new(batch->requests[0]->responder, &forgotten)) return NULL;
  misuse_extensions();
  misuse_batch(batch);
  misuse_request(batch->requests[0]);
  allowed("a batch finished", host->batch_finish(batch, NULL, NULL));
  allowed("a batch finished again", host->batch_finish(batch, NULL, NULL));
  refused("a null batch", host->batch_finish(NULL, NULL, NULL));
  return NULL;
}
const trts_backend_table *trts_backend_main(const trts_host_table *with) {
  static const trts_backend_table table = {.size = sizeof table, .abi_major = TRTS_ABI_MAJOR,
      .abi_minor = TRTS_ABI_MINOR, .backend_info = backend_info, .backend_open = open_backend,
      .backend_close = close_backend, .model_open = open_model, .model_close = close_model,
      .instance_open = open_instance, .execute = execute, .instance_close = close_instance};
  host = with;
  memory = with->get_extension(trts_text(TRTS_EXTENSION_MEMORY), TRTS_EXTENSION_MEMORY_VERSION);
  return &table;
}
