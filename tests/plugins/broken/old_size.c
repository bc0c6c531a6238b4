/* A backend table whose size excludes required entries. */
#include <trtserver/trtserver.h>
#include <stddef.h>

static const trts_backend_info *backend_info(trts_backend *backend) {
  static const trts_backend_info info = {.size = sizeof info, .name = {"old_size", 8}, .version = {"1.0", 3},
      .max_in_flight = 1, .input_memory_types = 1, .output_memory_types = 1};
  return (void)backend, &info;
}
static trts_error *open_backend(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_backend **out) {
  (void)scope, (void)name, (void)dir, (void)settings, (void)n_settings;
  return *out = (trts_backend *)out, NULL;
}
static trts_error *open_model(trts_backend *backend, const trts_model_desc *desc, trts_model **out) {
  return *out = (trts_model *)backend, (void)desc, NULL;
}
static trts_error *open_instance(trts_model *model, const trts_instance_desc *desc, trts_instance **out) {
  return *out = (trts_instance *)model, (void)desc, NULL;
}
static void close_backend(trts_backend *backend) { (void)backend; }
static void close_model(trts_model *model) { (void)model; }
static void close_instance(trts_instance *instance) { (void)instance; }
static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  return (void)instance, (void)batch, NULL;
}
const trts_backend_table *trts_backend_main(const trts_host_table *host) {
  static const trts_backend_table table = {.size = offsetof(trts_backend_table, model_open),
      .abi_major = TRTS_ABI_MAJOR, .abi_minor = TRTS_ABI_MINOR, .backend_info = backend_info,
      .backend_open = open_backend, .backend_close = close_backend, .model_open = open_model,
      .model_close = close_model, .instance_open = open_instance, .execute = execute,
      .instance_close = close_instance};
  return (void)host, &table;
}
