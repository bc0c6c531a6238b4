/* SPDX-License-Identifier: Apache-2.0 */
/* OUTPUT0 = INPUT0 + INPUT1 and OUTPUT1 = INPUT0 - INPUT1, all FP32: a whole backend in C11, from the headers alone. */
#include <stdio.h>
#include <trtserver/trtserver.h>

#define NAME "c_addsub"

static const trts_host_table *host; /* the server's functions; never freed */
static int nothing;                 /* handles without state point here */

/* Creates an error; the receiver frees it. */
static trts_error *refuse(uint32_t code, const char *text) { return host->error_new(code, 0, trts_text(text)); }

/* ---- name, version and capabilities; called before anything is opened ---- */

static const trts_backend_info *backend_info(trts_backend *backend) {
  static const trts_str platform = {NAME, sizeof NAME - 1};
  static const trts_str file = {"", 0}; /* models need no file */
  static const trts_backend_info info = {
      .size = sizeof info,
      .name = {NAME, sizeof NAME - 1},
      .version = {"0.2.0", 5},
      .platforms = &platform,
      .default_files = &file,
      .n_platforms = 1,
      .max_in_flight = 1,
      .input_memory_types = 1u << TRTS_MEMORY_CPU,
      .output_memory_types = 1u << TRTS_MEMORY_CPU,
  };
  (void)backend;
  return &info;
}

/* ---- once per server: settings, a framework's library, a pool of threads ---- */

static trts_error *backend_open(trts_scope *scope, trts_str name, trts_str dir, const trts_param *settings,
                               uint32_t n_settings, trts_backend **out) {
  (void)scope, (void)name, (void)dir, (void)settings, (void)n_settings;
  *out = (trts_backend *)&nothing;
  return NULL;
}

static void backend_close(trts_backend *backend) { (void)backend; }

/* ---- once per version of a model: what its instances share, such as weights ---- */

/* What is wrong with a configuration is said when the model is loaded, not to its callers. */
static trts_error *check(const trts_model_desc *desc, const trts_tensor_decl *tensors, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (tensors[i].dtype != TRTS_DTYPE_FP32) {
      char text[512];
      snprintf(text, sizeof text, "model '%.200s': tensor '%.200s' is not FP32", desc->name.p, tensors[i].name.p);
      return refuse(TRTS_CODE_INVALID, text);
    }
  }
  return NULL;
}

static trts_error *model_open(trts_backend *backend, const trts_model_desc *desc, trts_model **out) {
  (void)backend;
  trts_error *error = check(desc, desc->inputs, desc->n_inputs);
  if (error == NULL) error = check(desc, desc->outputs, desc->n_outputs);
  if (error != NULL) return error;
  host->log(desc->scope, TRTS_LEVEL_INFO, trts_text(__FILE__), __LINE__, trts_text("ready to add"));
  *out = (trts_model *)&nothing;
  return NULL;
}

static void model_close(trts_model *model) { (void)model; }

/* ---- once per instance, on a thread of its own ---- */

static trts_error *instance_open(trts_model *model, const trts_instance_desc *desc, trts_instance **out) {
  (void)model, (void)desc;
  *out = (trts_instance *)&nothing;
  return NULL;
}

static void instance_close(trts_instance *instance) { (void)instance; }

static const trts_tensor *input(const trts_request *request, const char *name) {
  for (uint32_t i = 0; i < request->n_inputs; i++)
    if (trts_is(request->inputs[i].name, name)) return &request->inputs[i];
  return NULL;
}

/* Fills the response. An error fails this request alone. */
static trts_error *fill_response(const trts_request *request, trts_response *response) {
  const trts_tensor *a = input(request, "INPUT0"), *b = input(request, "INPUT1");
  if (a == NULL || b == NULL) return refuse(TRTS_CODE_INVALID, "INPUT0 and INPUT1 are required");
  if (a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0)
    return refuse(TRTS_CODE_INVALID, "INPUT0 and INPUT1 differ in shape");
  if (a->n_parts > 1 || b->n_parts > 1)
    return refuse(TRTS_CODE_UNSUPPORTED, "INPUT0 or INPUT1 is in several parts");
  for (int sign = 1; sign >= -1; sign -= 2) {
    /* Memory of the response, sent without a copy. 0 bytes: the output was not requested. */
    trts_buf to;
    trts_error *error =
        host->output_alloc(response, trts_text(sign > 0 ? "OUTPUT0" : "OUTPUT1"), TRTS_DTYPE_FP32, a->rank,
                           a->shape, a->bytes, (trts_memory){TRTS_MEMORY_CPU, 0}, &to);
    if (error != NULL) return error;
    if (to.bytes == 0) continue;
    const float *x = a->parts[0].ptr, *y = b->parts[0].ptr;
    float *sums = to.ptr;
    for (uint64_t i = 0; i < to.bytes / sizeof *sums; i++) sums[i] = x[i] + (float)sign * y[i];
  }
  return NULL;
}

static trts_error *execute(trts_instance *instance, trts_batch *batch) {
  (void)instance;
  for (uint32_t i = 0; i < batch->n_requests; i++) {
    const trts_request *request = batch->requests[i];
    trts_response *response;
    trts_error *error = host->response_new(request->responder, &response);
    if (error == NULL) {
      error = fill_response(request, response);
      /* Consumes the response, and sends the error instead if there is one. We still own the error. */
      host->error_free(host->response_send(response, TRTS_SEND_FINAL, error, NULL));
    }
    host->error_free(error);
  }
  /* Returns the requests; any without a final response fails with an error. */
  host->error_free(host->batch_finish(batch, NULL, NULL));
  return NULL;
}

/* ---- the symbol that the server looks up ---- */

const trts_backend_table *trts_backend_main(const trts_host_table *with) {
  static const trts_backend_table table = {
      .size = sizeof table,
      .abi_major = TRTS_ABI_MAJOR,
      .abi_minor = TRTS_ABI_MINOR,
      .backend_info = backend_info,
      .backend_open = backend_open,
      .backend_close = backend_close,
      .model_open = model_open,
      .model_close = model_close,
      .instance_open = instance_open,
      .execute = execute,
      .instance_close = instance_close,
  };
  host = with;
  return &table;
}
