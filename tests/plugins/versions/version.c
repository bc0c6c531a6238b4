/* Says which version it is: OUTPUT0 is one FP32, NUMBER. Compiled several times by the tests, with NAME, VERSION, NUMBER
 * and, for interfaces that are not ours, MAJOR and MINOR. With ISOLATION the number is what the host says of its process. */
#include <trtserver/trtserver.h>

#ifndef MAJOR
#define MAJOR TRTS_ABI_MAJOR
#endif
#ifndef MINOR
#define MINOR TRTS_ABI_MINOR
#endif
#ifndef PLATFORM
#define PLATFORM NAME
#endif
#ifdef ISOLATION
#define NUMBER (float)(host->flags & TRTS_HOST_ISOLATED)
#endif

static const trts_host *host;
static int handle; /* there is no state: every handle is the address of this */

static const trts_about *describe(trts_plugin *plugin) {
  static const trts_str platform = {PLATFORM, sizeof PLATFORM - 1}, file = {"", 0};
  static const trts_about closed = {.size = sizeof closed, .name = {NAME, sizeof NAME - 1},
      .version = {VERSION, sizeof VERSION - 1}, .platforms = &platform, .default_files = &file, .n_platforms = 1,
      .max_in_flight = 1, .input_places = 1u << TRTS_PLACE_CPU, .output_places = 1u << TRTS_PLACE_CPU};
  static trts_about open;
  if (!plugin) return &closed;
  open = closed;
  open.runtime = trts_text("framework of " VERSION);
  return &open;
}
static trts_error *open_plugin(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_plugin **out) {
  (void)scope, (void)name, (void)dir;
  for (uint32_t i = 0; i < n_settings; i++)
    if (trts_is(settings[i].key, "version"))
      return host->error_new(TRTS_CODE_INVALID, 0, trts_text("'version' is the host's"));
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

static trts_error *answer(const trts_call *call, trts_response *response) {
  const int64_t shape[] = {call->batch, 1};
  trts_buf to;
  trts_error *error = host->output_alloc(response, trts_text("OUTPUT0"), TRTS_DTYPE_FP32, 2, shape,
                                         4 * (uint64_t)call->batch, (trts_place){TRTS_PLACE_CPU, 0}, &to);
  if (error) return error;
  for (uint64_t i = 0; i < to.bytes / 4; i++) ((float *)to.ptr)[i] = NUMBER;
  return NULL;
}
static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  (void)instance;
  for (uint32_t i = 0; i < batch->n; i++) {
    trts_response *response;
    trts_error *error = host->response_new(batch->calls[i]->reply, &response);
    if (error) { host->error_free(error); continue; } /* batch_send ends this call */
    error = answer(batch->calls[i], response);
    host->error_free(host->response_send(response, TRTS_SEND_LAST, error, NULL));
    host->error_free(error);
  }
  return host->error_free(host->batch_send(batch, NULL, NULL)), NULL; /* releases the requests */
}
const trts_plugin_table *trts_plugin_main(const trts_host *with) {
  static const trts_plugin_table table = {.size = sizeof table, .abi_major = MAJOR,
      .abi_minor = MINOR, .describe = describe, .plugin_open = open_plugin,
      .plugin_close = close_plugin, .model_open = open_model, .model_close = close_model,
      .instance_open = open_instance, .execute = execute, .instance_close = close_instance};
  return host = with, &table;
}
