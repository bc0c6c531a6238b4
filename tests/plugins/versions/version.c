/* Reports its version: OUTPUT0 is one FP32, NUMBER. Tests compile it several times, with NAME, VERSION, NUMBER and
 * optionally MAJOR, MINOR and SIZE (interface and size of the backend table), REQUIRES and REQUIRES_VERSION (an extension
 * of the host), LISTS (an extension that it lists and does not return), OPEN_FAILS (why backend_open fails), CONSTRUCTOR (a
 * statement that loading the library executes). With ISOLATION the number is TRTS_HOST_ISOLATED of the host's flags, with
 * LIBRARY it comes from dep.c, and with UNIQUE it is a GNU_UNIQUE variable, like static variables of C++ templates. */
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
#ifndef SIZE
#define SIZE sizeof(trts_backend_table)
#endif
#ifndef REQUIRES_VERSION
#define REQUIRES_VERSION 1
#endif
#ifdef LIBRARY
int dep(void);
#define NUMBER (float)dep()
#endif
#ifdef UNIQUE
#define TEXT_OF(it) #it
#define TEXT(it) TEXT_OF(it)
__asm__(".data\n.balign 4\n.globl unique_number\n.type unique_number, %gnu_unique_object\n.size unique_number, 4\n"
        "unique_number: .long " TEXT(UNIQUE) "\n.text");
extern int unique_number;
#define NUMBER (float)unique_number
#endif
#ifdef ISOLATION
#define NUMBER (float)(host->flags & TRTS_HOST_ISOLATED)
#endif

#ifdef CONSTRUCTOR
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void constructor(void) { CONSTRUCTOR; }
#endif

static const trts_host_table *host;
static int handle; /* there is no state: every handle is the address of this */

static const trts_backend_info *backend_info(trts_backend *backend) {
  static const trts_str platform = {PLATFORM, sizeof PLATFORM - 1}, file = {"", 0};
#ifdef REQUIRES
  static const trts_extension required = {{REQUIRES, sizeof REQUIRES - 1}, REQUIRES_VERSION, 0};
#endif
#ifdef LISTS
  static const trts_extension listed = {{LISTS, sizeof LISTS - 1}, 1, 0};
#endif
  static const trts_backend_info closed = {.size = sizeof closed, .name = {NAME, sizeof NAME - 1},
      .version = {VERSION, sizeof VERSION - 1}, .platforms = &platform, .default_files = &file, .n_platforms = 1,
#ifdef REQUIRES
      .required_extensions = &required, .n_required_extensions = 1,
#endif
#ifdef LISTS
      .extensions = &listed, .n_extensions = 1,
#endif
      .max_in_flight = 1, .input_memory_types = 1u << TRTS_MEMORY_CPU, .output_memory_types = 1u << TRTS_MEMORY_CPU};
  static trts_backend_info open;
  if (!backend) return &closed;
  open = closed;
  open.runtime = trts_text("framework of " VERSION);
  return &open;
}
static trts_error *open_backend(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_backend **out) {
  (void)scope, (void)name, (void)dir;
  for (uint32_t i = 0; i < n_settings; i++)
    if (trts_is(settings[i].key, "version"))
      return host->error_new(TRTS_CODE_INVALID, 0, trts_text("'version' is the host's"));
#ifdef OPEN_FAILS
  return *out = NULL, host->error_new(TRTS_CODE_INTERNAL, 0, trts_text(OPEN_FAILS));
#endif
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
  const int64_t shape[] = {request->batch_size, 1};
  trts_buf to;
  trts_error *error = host->output_alloc(response, trts_text("OUTPUT0"), TRTS_DTYPE_FP32, 2, shape,
                                         4 * (uint64_t)request->batch_size, (trts_memory){TRTS_MEMORY_CPU, 0}, &to);
  if (error) return error;
  for (uint64_t i = 0; i < to.bytes / 4; i++) ((float *)to.ptr)[i] = NUMBER;
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
  static const trts_backend_table table = {.size = SIZE, .abi_major = MAJOR,
      .abi_minor = MINOR, .backend_info = backend_info, .backend_open = open_backend,
      .backend_close = close_backend, .model_open = open_model, .model_close = close_model,
      .instance_open = open_instance, .execute = execute, .instance_close = close_instance};
  return host = with, &table;
}
