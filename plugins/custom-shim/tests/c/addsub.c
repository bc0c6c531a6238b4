/* OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1 of INT32; reads its inputs as they come. */
#include "custom.h"
#include <stdlib.h>
#include <string.h>

static int start(const char* config, size_t n, const CustomInitializeData* data, int gpu, void** context) {
  (void)config, (void)n, (void)data, (void)gpu;
  *context = malloc(1);
  return 0;
}
INITIALIZE(start)

int CustomFinalize(void* context) {
  free(context);
  return 0;
}

const char* CustomErrorString(void* context, int error) {
  (void)context;
  return error == 1 ? "an input has another size" : error == 2 ? "an output was refused" : "unknown";
}

/* Reads a whole input; the number of its bytes, or 0. */
static size_t whole(GetNextInput get, const CustomPayload* p, const char* name, char* to, size_t room) {
  size_t at = 0;
  for (;;) {
    const void* block;
    uint64_t n = room - at;
    if (!next(get, p, name, &block, &n)) return 0;
    if (block == NULL) return at;
    if (n > room - at) return 0;
    memcpy(to + at, block, n);
    at += n;
  }
}

static int one(CustomPayload* p, GetNextInput get, GetOutput put) {
  static const char* names[2] = {"OUTPUT0", "OUTPUT1"};
  int32_t a[1024], b[1024];
  size_t n = whole(get, p, "INPUT0", (char*)a, sizeof a);
  if (n == 0 || whole(get, p, "INPUT1", (char*)b, sizeof b) != n) return 1;
  for (uint32_t o = 0; o < p->output_cnt; o++) {
    const char* name = p->required_output_names[o];
    int64_t shape[9] = {p->batch_size};
    size_t rank = 1;
#if GEN == 1
    shape[rank++] = (int64_t)(n / sizeof *a / p->batch_size);
#else
    for (; rank <= p->input_shape_dim_cnts[0]; rank++) shape[rank] = p->input_shape_dims[0][rank - 1];
#endif
    int32_t* to;
    if (!output(put, p, name, rank, shape, n, (void**)&to)) return 2;
    for (size_t i = 0; to != NULL && i < n / sizeof *a; i++)
      to[i] = strcmp(name, names[0]) == 0 ? a[i] + b[i] : a[i] - b[i];
  }
  return wrong_memory ? 3 : 0;
}

int EXECUTE(void* context, uint32_t n, CustomPayload* payloads, GetNextInput get, GetOutput put) {
  (void)context;
  for (uint32_t i = 0; i < n; i++) payloads[i].error_code = one(&payloads[i], get, put);
  return 0;
}
