/* OUT = IN of all requests of a batch at once: gathered, then scattered. In C, from the headers alone:
 * cc -shared -fPIC -I plugin-api/include -o libtrtserver_c_merge.so tests/plugins/c-merge/merge.c */
#include <string.h>
#include <trtserver/trtserver.h>

static const trts_host_table *host;
static int handle; /* there is no state: every handle is the address of this */
static const trts_memory cpu = {TRTS_MEMORY_CPU, 0};

static const trts_backend_info *backend_info(trts_backend *backend) {
  static const trts_str platform = {"c_merge", 7}, file = {"", 0};
  static const trts_backend_info info = {.size = sizeof info, .name = {"c_merge", 7}, .version = {"1.0", 3},
      .platforms = &platform, .default_files = &file, .n_platforms = 1, .max_in_flight = 1};
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

static trts_error *work(const trts_batch *batch) {
  const trts_tensor *in = batch->requests[0]->inputs;
  int64_t shape[8];
  if (!batch->requests[0]->n_inputs || !in->rank || in->rank > 8)
    return host->error_new(TRTS_CODE_UNSUPPORTED, 0, trts_text("one input with up to 8 dimensions is required"));
  memcpy(shape, in->shape, in->rank * sizeof *shape);
  if (batch->n_requests > 1) shape[0] = batch->rows; /* of a single request the shape is complete */
  trts_buf from, to;
  trts_error *error = host->gather(batch, 0, cpu, TRTS_GATHER_ROWS, NULL, &from);
  if (error) return error;
  error = host->scatter_alloc(batch, trts_text("OUT"), in->dtype, in->rank, shape, from.bytes, cpu, &to);
  if (!error && to.bytes) memcpy(to.ptr, from.ptr, from.bytes); /* 0 bytes: not requested */
  return error;
}
static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  (void)instance;
  trts_error *error = work(batch);
  host->error_free(host->batch_finish(batch, error, NULL)); /* each request gets its rows, or the error */
  return host->error_free(error), NULL;
}
const trts_backend_table *trts_backend_main(const trts_host_table *with) {
  static const trts_backend_table table = {.size = sizeof table, .abi_major = TRTS_ABI_MAJOR,
      .abi_minor = TRTS_ABI_MINOR, .backend_info = backend_info, .backend_open = open_backend,
      .backend_close = close_backend, .model_open = open_model, .model_close = close_model,
      .instance_open = open_instance, .execute = execute, .instance_close = close_instance};
  return host = with, &table;
}
