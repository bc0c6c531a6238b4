/* A table that says it ends before the entries that every plugin must have. */
#include <trtserver/trtserver.h>
#include <stddef.h>

static const trts_about *describe(trts_plugin *plugin) {
  static const trts_about about = {.size = sizeof about, .name = {"old_size", 8}, .version = {"1.0", 3},
      .max_in_flight = 1, .input_places = 1, .output_places = 1};
  return (void)plugin, &about;
}
static trts_error *open_plugin(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_plugin **out) {
  (void)scope, (void)name, (void)dir, (void)settings, (void)n_settings;
  return *out = (trts_plugin *)out, NULL;
}
static trts_error *open_model(trts_plugin *plugin, const trts_model_desc *desc, trts_model **out) {
  return *out = (trts_model *)plugin, (void)desc, NULL;
}
static trts_error *open_instance(trts_model *model, const trts_instance_desc *desc, trts_instance **out) {
  return *out = (trts_instance *)model, (void)desc, NULL;
}
static void close_plugin(trts_plugin *plugin) { (void)plugin; }
static void close_model(trts_model *model) { (void)model; }
static void close_instance(trts_instance *instance) { (void)instance; }
static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  return (void)instance, (void)batch, NULL;
}
const trts_plugin_table *trts_plugin_main(const trts_host *host) {
  static const trts_plugin_table table = {.size = offsetof(trts_plugin_table, model_open),
      .abi_major = TRTS_ABI_MAJOR, .abi_minor = TRTS_ABI_MINOR, .describe = describe,
      .plugin_open = open_plugin, .plugin_close = close_plugin, .model_open = open_model,
      .model_close = close_model, .instance_open = open_instance, .execute = execute,
      .instance_close = close_instance};
  return (void)host, &table;
}
