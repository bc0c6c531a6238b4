#define _GNU_SOURCE
/* Executes the command in the first element of its INT32 input DO and writes the results to OUT. */
#include "custom.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_OUTPUT 77 /* succeeds without an output */

static int initialised, finalised;
static CustomPayload old;
static char story[4096];

/* The model's name, which the configuration contains, selects whether initialise fails. */
static int start(const char* config, size_t n, const CustomInitializeData* data, int gpu, void** context) {
  size_t length = n ? n : strlen(config);
  initialised++;
  snprintf(story, sizeof story, "gpu %d, config %zu bytes, zero behind %d", gpu, length, config[length] == 0);
  if (data)
    snprintf(story + strlen(story), sizeof story - strlen(story), ", %s, %zu: %s, %s", data->instance_name,
             data->parameter_cnt, data->parameters[0], data->parameters[1]);
  *context = NULL;
  if (memmem(config, length, "refuse", 6)) return 11;
  if (memmem(config, length, "silent", 6)) return 12;
  *context = malloc(1);
  return 0;
}
INITIALIZE(start)

int CustomFinalize(void* context) {
  finalised++;
  free(context);
  return 13;
}

const char* CustomErrorString(void* context, int error) {
  (void)context;
  switch (error) {
    case 11: return "initialise failed on command";
    case 13: return "finalised badly";
    case 21: return "the batch is bad";
    case 22: return "the payload is bad";
    default: return NULL;
  }
}

int probe_initialised(void) { return initialised; }
int probe_finalised(void) { return finalised; }
const char* probe_story(void) { return story; }

/* Writes the results to OUT. */
static int write_results(const CustomPayload* p, GetOutput put, const int32_t* results, size_t count) {
  int64_t shape[2] = {p->batch_size, (int64_t)count};
  void* to;
  if (!output(put, p, "OUT", 2, shape, count * 4, &to)) return 30;
  if (to == NULL) return 31;
  memcpy(to, results, count * 4);
  return 0;
}

static int one(CustomPayload* p, GetNextInput get, GetOutput put) {
  const void* block = NULL;
  uint64_t n = 4;
  int64_t shape[2] = {p->batch_size, 1};
  void* to = &to;
  int32_t task, results[16] = {0};
  if (!next(get, p, "DO", &block, &n) || block == NULL) return 32;
  memcpy(&task, block, 4);
  switch (task) {
    case 1: return 22;
    case 2: return 23;
    case 3: /* an output that was not requested */
      results[0] = output(put, p, "SPARE", 2, shape, 4, &to);
      results[1] = to == NULL;
      return write_results(p, put, results, 2);
    case 6: /* null pointers */
      results[0] = next(get, p, NULL, &block, &n);
      results[1] = next(get, p, "DO", NULL, &n);
      results[2] = next(get, p, "DO", &block, NULL);
      results[3] = output(put, p, NULL, 2, shape, 4, &to);
      results[4] = output(put, p, "OUT", 2, shape, 4, NULL);
      return write_results(p, put, results, 5);
    case 7: /* a context of another execution */
      results[0] = next(get, &old, "DO", &block, &n);
      results[1] = output(put, &old, "OUT", 2, shape, 4, &to);
      memset(&old, 0, sizeof old);
      results[2] = next(get, &old, "DO", &block, &n);
      old.input_context = (void*)-1;
      results[3] = next(get, &old, "DO", &block, &n);
      return write_results(p, put, results, 4);
    case 8: results[0] = next(get, p, "NOTHING", &block, &n); return write_results(p, put, results, 1);
    case 9: /* hints: none, too small, and on after the end */
      n = 0, results[0] = next(get, p, "DATA", &block, &n), results[1] = block == NULL;
      for (int i = 2; i < 12; i += 2) {
        n = 1;
        results[i] = next(get, p, "DATA", &block, &n);
        results[i + 1] = block ? (int)n : -1;
      }
      return write_results(p, put, results, 12);
    case 10: { /* what the payload lists */
#if GEN > 1
      results[0] = (int)p->input_cnt;
      results[1] = p->input_cnt ? (int)p->input_shape_dim_cnts[0] : 0;
      results[2] = p->input_cnt ? (int)p->input_shape_dims[0][0] : 0;
#endif
      results[3] = (int)p->output_cnt;
      results[4] = (int)p->batch_size;
      n = 100, results[5] = next(get, p, "READY", &block, &n), results[6] = block ? *(const int*)block : -1;
      n = 100, next(get, p, "READY", &block, &n), results[7] = block == NULL;
      return write_results(p, put, results, 8);
    }
    case 11: output(put, p, "OUT", (size_t)-1, shape, 4, &to); return 0;
    case 12: output(put, p, "OUT", 2, NULL, 4, &to); return 0;
    case 13: output(put, p, "OUT", 2, shape, UINT64_MAX, &to); return 0;
    case NO_OUTPUT: return 0;
    case 0: /* a null request's zeros: the first hint is the total */
      n = 6, results[0] = next(get, p, "WHATEVER", &block, &n), results[1] = (int)n;
      n = 6, results[2] = next(get, p, "WHATEVER", &block, &n), results[3] = block == NULL;
      to = &to;
      results[4] = output(put, p, "OUT", 2, shape, 4, &to), results[5] = to == NULL;
      snprintf(story, sizeof story, "%d %d %d %d %d %d", results[0], results[1], results[2], results[3],
               results[4], results[5]);
      return 0;
    default: return write_results(p, put, &task, 1);
  }
}

int EXECUTE(void* context, uint32_t n, CustomPayload* payloads, GetNextInput get, GetOutput put) {
  (void)context;
  for (uint32_t i = 0; i < n; i++) {
    const void* block = NULL;
    uint64_t bytes = 4;
    payloads[i].error_code = one(&payloads[i], get, put);
    if (payloads[i].error_code == 22 && next(get, &payloads[i], "ALL", &block, &bytes)) return 21;
  }
  old = payloads[n - 1];
  return wrong_memory ? 24 : 0;
}
