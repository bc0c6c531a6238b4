/* An adapter: opens libfoo_NAME.so by the setting 'adapted-library', and OUTPUT0 of its models is that library's number. Logs name,
 * directory and settings of each backend that it opens. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <trtserver/trtserver.h>

typedef float number_fn(void);
/* Both a backend and its models and instances. */
typedef struct opened {
  number_fn *number;
} opened;

static const trts_host_table *host;

static const trts_backend_info *backend_info(trts_backend *backend) {
  static const trts_str platform = {"foo", 3}, file = {"", 0};
  static const trts_backend_info info = {.size = sizeof info, .name = {"foo", 3}, .version = {"2.5", 3},
      .platforms = &platform, .default_files = &file, .n_platforms = 1, .max_in_flight = 1,
      .input_memory_types = 1u << TRTS_MEMORY_CPU, .output_memory_types = 1u << TRTS_MEMORY_CPU};
  return (void)backend, &info;
}
static trts_error *failed(const char *text) { return host->error_new(TRTS_CODE_INVALID, 0, trts_text(text)); }
static trts_error *open_backend(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_backend **out) {
  const char *library = NULL;
  char text[4096];
  int n = snprintf(text, sizeof text, "adapter opens %s in %s:", name.p, dir.p);
  for (uint32_t i = 0; i < n_settings && n < (int)sizeof text; i++) {
    n += snprintf(text + n, sizeof text - n, " %s=%s", settings[i].key.p, settings[i].text.p);
    if (trts_is(settings[i].key, "adapted-library")) library = settings[i].text.p;
  }
  host->log(scope, TRTS_LEVEL_INFO, trts_text(__FILE__), __LINE__, trts_text(text));
  void *handle = library ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!handle) return failed(library ? dlerror() : "no setting 'adapted-library'");
  opened *backend = malloc(sizeof *backend);
  *(void **)&backend->number = dlsym(handle, "foo_number");
  if (!backend->number) return free(backend), failed("it has no foo_number");
  return *out = (trts_backend *)backend, NULL;
}
static trts_error *open_model(trts_backend *backend, const trts_model_desc *desc, trts_model **out) {
  (void)desc;
  return *out = (trts_model *)backend, NULL;
}
static trts_error *open_instance(trts_model *model, const trts_instance_desc *desc, trts_instance **out) {
  (void)desc;
  return *out = (trts_instance *)model, NULL;
}
static void close_backend(trts_backend *backend) { free(backend); }
static void close_model(trts_model *model) { (void)model; }
static void close_instance(trts_instance *instance) { (void)instance; }

static trts_error *fill_response(float number, const trts_request *request, trts_response *response) {
  const int64_t shape[] = {request->batch_size, 1};
  trts_buf to;
  trts_error *error = host->output_alloc(response, trts_text("OUTPUT0"), TRTS_DTYPE_FP32, 2, shape,
                                         4 * (uint64_t)request->batch_size, (trts_memory){TRTS_MEMORY_CPU, 0}, &to);
  if (error) return error;
  for (uint64_t i = 0; i < to.bytes / 4; i++) ((float *)to.ptr)[i] = number;
  return NULL;
}
static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  float number = ((opened *)instance)->number();
  for (uint32_t i = 0; i < batch->n_requests; i++) {
    trts_response *response;
    trts_error *error = host->response_new(batch->requests[i]->responder, &response);
    if (error) { host->error_free(error); continue; } /* batch_finish ends this request */
    error = fill_response(number, batch->requests[i], response);
    host->error_free(host->response_send(response, TRTS_SEND_FINAL, error, NULL));
    host->error_free(error);
  }
  return host->error_free(host->batch_finish(batch, NULL, NULL)), NULL; /* releases the requests */
}
const trts_backend_table *trts_backend_main(const trts_host_table *with) {
  static const trts_backend_table table = {.size = sizeof table, .abi_major = TRTS_ABI_MAJOR,
      .abi_minor = TRTS_ABI_MINOR, .backend_info = backend_info, .backend_open = open_backend,
      .backend_close = close_backend, .model_open = open_model, .model_close = close_model,
      .instance_open = open_instance, .execute = execute, .instance_close = close_instance};
  return host = with, &table;
}
