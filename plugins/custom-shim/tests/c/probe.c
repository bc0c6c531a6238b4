#define _GNU_SOURCE
/* Does what the first element of its INT32 input DO says and answers in OUT with what it saw. */
#include "custom.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNSEEN 77 /* leaves no trace */

static int initialised, finalised;
static CustomPayload old;
static char story[4096];

/* The instance's name is its task where there is one; else the config holds it as the model's name. */
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
    case 11: return "refused as asked";
    case 13: return "finalised badly";
    case 21: return "the batch is bad";
    case 22: return "the payload is bad";
    default: return NULL;
  }
}

int probe_initialised(void) { return initialised; }
int probe_finalised(void) { return finalised; }
const char* probe_story(void) { return story; }

/* Writes what it saw. */
static int tell(const CustomPayload* p, GetOutput put, const int32_t* seen, size_t count) {
  int64_t shape[2] = {p->batch_size, (int64_t)count};
  void* to;
  if (!output(put, p, "OUT", 2, shape, count * 4, &to)) return 30;
  if (to == NULL) return 31;
  memcpy(to, seen, count * 4);
  return 0;
}

static int one(CustomPayload* p, GetNextInput get, GetOutput put) {
  const void* block = NULL;
  uint64_t n = 4;
  int64_t shape[2] = {p->batch_size, 1};
  void* to = &to;
  int32_t task, seen[16] = {0};
  if (!next(get, p, "DO", &block, &n) || block == NULL) return 32;
  memcpy(&task, block, 4);
  switch (task) {
    case 1: return 22;
    case 2: return 23;
    case 3: /* an output that nobody asked for */
      seen[0] = output(put, p, "SPARE", 2, shape, 4, &to);
      seen[1] = to == NULL;
      return tell(p, put, seen, 2);
    case 6: /* null pointers */
      seen[0] = next(get, p, NULL, &block, &n);
      seen[1] = next(get, p, "DO", NULL, &n);
      seen[2] = next(get, p, "DO", &block, NULL);
      seen[3] = output(put, p, NULL, 2, shape, 4, &to);
      seen[4] = output(put, p, "OUT", 2, shape, 4, NULL);
      return tell(p, put, seen, 5);
    case 7: /* a context of another execution */
      seen[0] = next(get, &old, "DO", &block, &n);
      seen[1] = output(put, &old, "OUT", 2, shape, 4, &to);
      memset(&old, 0, sizeof old);
      seen[2] = next(get, &old, "DO", &block, &n);
      old.input_context = (void*)-1;
      seen[3] = next(get, &old, "DO", &block, &n);
      return tell(p, put, seen, 4);
    case 8: seen[0] = next(get, p, "NOTHING", &block, &n); return tell(p, put, seen, 1);
    case 9: /* hints: none, too small, and on after the end */
      n = 0, seen[0] = next(get, p, "DATA", &block, &n), seen[1] = block == NULL;
      for (int i = 2; i < 12; i += 2) {
        n = 1;
        seen[i] = next(get, p, "DATA", &block, &n);
        seen[i + 1] = block ? (int)n : -1;
      }
      return tell(p, put, seen, 12);
    case 10: { /* what is listed */
#if GEN > 1
      seen[0] = (int)p->input_cnt;
      seen[1] = p->input_cnt ? (int)p->input_shape_dim_cnts[0] : 0;
      seen[2] = p->input_cnt ? (int)p->input_shape_dims[0][0] : 0;
#endif
      seen[3] = (int)p->output_cnt;
      seen[4] = (int)p->batch_size;
      n = 100, seen[5] = next(get, p, "READY", &block, &n), seen[6] = block ? *(const int*)block : -1;
      n = 100, next(get, p, "READY", &block, &n), seen[7] = block == NULL;
      return tell(p, put, seen, 8);
    }
    case 11: output(put, p, "OUT", (size_t)-1, shape, 4, &to); return 0;
    case 12: output(put, p, "OUT", 2, NULL, 4, &to); return 0;
    case 13: output(put, p, "OUT", 2, shape, UINT64_MAX, &to); return 0;
    case UNSEEN: return 0;
    case 0: /* a null request's zeros: the first hint is the total */
      n = 6, seen[0] = next(get, p, "WHATEVER", &block, &n), seen[1] = (int)n;
      n = 6, seen[2] = next(get, p, "WHATEVER", &block, &n), seen[3] = block == NULL;
      to = &to;
      seen[4] = output(put, p, "OUT", 2, shape, 4, &to), seen[5] = to == NULL;
      snprintf(story, sizeof story, "%d %d %d %d %d %d", seen[0], seen[1], seen[2], seen[3], seen[4], seen[5]);
      return 0;
    default: return tell(p, put, &task, 1);
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
