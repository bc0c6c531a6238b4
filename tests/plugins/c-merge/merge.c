/* OUT = IN of all calls in one go: gathered, then scattered. In C, from the headers alone:
 * cc -shared -fPIC -I plugin-api/include -o libtrtserver_c_merge.so tests/plugins/c-merge/merge.c */
#include <string.h>
#include <trtserver/trtserver.h>

static const trts_host *host;
static int handle; /* there is no state: every handle is the address of this */
static const trts_place cpu = {TRTS_PLACE_CPU, 0};

static const trts_about *describe(trts_plugin *plugin) {
  static const trts_str platform = {"c_merge", 7}, file = {"", 0};
  static const trts_about about = {.size = sizeof about, .name = {"c_merge", 7}, .version = {"1.0", 3},
      .platforms = &platform, .default_files = &file, .n_platforms = 1, .max_in_flight = 1};
  return (void)plugin, &about;
}
static trts_error *open_plugin(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_plugin **out) {
  (void)scope, (void)name, (void)dir, (void)settings, (void)n_settings;
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
static void close_plugin(trts_plugin *plugin) { (void)plugin; }
static void close_model(trts_model *model) { (void)model; }
static void close_instance(trts_instance *instance) { (void)instance; }

static trts_error *work(const trts_batch *batch) {
  const trts_tensor *in = batch->calls[0]->inputs;
  int64_t shape[8];
  if (!host->gather || !host->scatter_alloc || !batch->calls[0]->n_inputs || !in->rank || in->rank > 8)
    return host->error_new(TRTS_CODE_UNSUPPORTED, 0, trts_text("need a host that merges, and one input"));
  memcpy(shape, in->shape, in->rank * sizeof *shape);
  if (batch->n > 1) shape[0] = batch->rows; /* of a single call the shape is right already */
  trts_buf from, to;
  trts_error *error = host->gather(batch, 0, cpu, TRTS_GATHER_ROWS, NULL, &from);
  if (error) return error;
  error = host->scatter_alloc(batch, trts_text("OUT"), in->dtype, in->rank, shape, from.bytes, cpu, &to);
  if (!error && to.bytes) memcpy(to.ptr, from.ptr, from.bytes); /* 0 bytes: nobody wants it */
  return error;
}
static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  (void)instance;
  trts_error *error = work(batch);
  host->error_free(host->batch_send(batch, error, NULL)); /* each call its rows, or all the error */
  return host->error_free(error), NULL;
}
const trts_plugin_table *trts_plugin_main(const trts_host *with) {
  static const trts_plugin_table table = {.size = sizeof table, .abi_major = TRTS_ABI_MAJOR,
      .abi_minor = TRTS_ABI_MINOR, .describe = describe, .plugin_open = open_plugin,
      .plugin_close = close_plugin, .model_open = open_model, .model_close = close_model,
      .instance_open = open_instance, .execute = execute, .instance_close = close_instance};
  return host = with, &table;
}
