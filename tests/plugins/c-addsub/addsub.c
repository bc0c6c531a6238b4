/* OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1, all FP32. A whole backend from the header alone:
 * cc -shared -fPIC -I plugin-api/include -o libtrtserver_c_addsub.so tests/plugins/c-addsub/addsub.c */
#include <trtserver/trtserver.h>

static const trts_host_table *host;
static int handle; /* there is no state: every handle is the address of this */

static const trts_backend_info *backend_info(trts_backend *backend) {
  static const trts_str platform = {"c_addsub", 8}, file = {"", 0};
  static const trts_backend_info info = {.size = sizeof info, .name = {"c_addsub", 8}, .version = {"1.0", 3},
      .platforms = &platform, .default_files = &file, .n_platforms = 1, .max_in_flight = 1,
      .input_memory_types = 1u << TRTS_MEMORY_CPU, .output_memory_types = 1u << TRTS_MEMORY_CPU, .align = 4};
  return (void)backend, &info;
}
static trts_error *open_backend(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_backend **out) {
  (void)scope, (void)name, (void)dir, (void)settings, (void)n_settings;
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
static void close_backend(trts_backend *backend) { (void)backend; }
static void close_model(trts_model *model) { (void)model; }
static void close_instance(trts_instance *instance) { (void)instance; }

static trts_error *fill_response(const trts_request *request, trts_response *response) {
  const trts_tensor *a = request->inputs, *b = request->inputs + 1;
  if (request->n_inputs != 2 || a->dtype != TRTS_DTYPE_FP32 || b->dtype != TRTS_DTYPE_FP32 ||
      a->bytes != b->bytes || a->n_parts != 1 || b->n_parts != 1)
    return host->error_new(TRTS_CODE_INVALID, 0, trts_text("need two FP32 inputs of one size"));
  if (trts_is(a->name, "INPUT1")) a = b, b = request->inputs;
  const float *x = a->parts->ptr, *y = b->parts->ptr;
  for (int sign = 1; sign >= -1; sign -= 2) {
    trts_str name = trts_text(sign == 1 ? "OUTPUT0" : "OUTPUT1");
    trts_buf to;
    trts_error *error = host->output_alloc(response, name, a->dtype, a->rank, a->shape, a->bytes,
                                           (trts_memory){TRTS_MEMORY_CPU, 0}, &to);
    if (error) return error;
    for (uint64_t i = 0; i < to.bytes / 4; i++) ((float *)to.ptr)[i] = x[i] + (float)sign * y[i];
  }
  return NULL;
}
static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  (void)instance;
  for (uint32_t i = 0; i < batch->n_requests; i++) {
    trts_response *response;
    trts_error *error = host->response_new(batch->requests[i]->responder, &response);
    if (error) { host->error_free(error); continue; } /* batch_finish ends this request */
    error = fill_response(batch->requests[i], response);
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
