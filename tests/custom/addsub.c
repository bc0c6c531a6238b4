/* OUTPUT0 is INPUT0 + INPUT1, OUTPUT1 is INPUT0 - INPUT1; INT32 or FP32, with and without a batch dimension. */
#include "generation.h"

enum { NO_MEMORY = 1, WRONG_TYPE, NO_INPUT, UNEQUAL_INPUTS, NO_OUTPUT };
enum { TYPE_INT32 = 8, TYPE_FP32 = 11 };

typedef struct {
  bool batches, is_float;
} Context;

static int library_start(const Start* start, void** context) {
  int64_t type = find_number(find_bytes(start->config, CONFIG_INPUT, 0), 2);
  if (type != TYPE_INT32 && type != TYPE_FP32) return WRONG_TYPE;
  Context* made = malloc(sizeof *made);
  if (made == NULL) return NO_MEMORY;
  made->batches = find_number(start->config, CONFIG_MAX_BATCH_SIZE) > 0;
  made->is_float = type == TYPE_FP32;
  *context = made;
  return 0;
}

static int library_finish(void* context) {
  free(context);
  return 0;
}

static const char* library_explain(void* context, int error) {
  (void)context;
  switch (error) {
    case NO_MEMORY: return "out of memory";
    case WRONG_TYPE: return "inputs must be TYPE_INT32 or TYPE_FP32";
    case NO_INPUT: return "an input cannot be read";
    case UNEQUAL_INPUTS: return "the inputs differ in size";
    case NO_OUTPUT: return "no memory for an output";
    default: return NULL;
  }
}

static int respond(const Context* context, const CustomPayload* payload, const uint8_t* a, const uint8_t* b,
                  uint64_t size, CustomGetOutput get_output) {
  for (uint32_t o = 0; o < payload->output_cnt; o++) {
    const char* name = payload->required_output_names[o];
    int64_t shape[16] = {0};
    size_t rank = 0;
#ifndef GENERATION_A
    if (context->batches) shape[rank++] = payload->batch_size;
    for (size_t i = 0; i < payload->input_shape_dim_cnts[0]; i++) shape[rank++] = payload->input_shape_dims[0][i];
#endif
    void* content = NULL;
    if (!ask_output(get_output, payload->output_context, name, rank, shape, size, &content)) return NO_OUTPUT;
    if (content == NULL) continue;
    int sign = strcmp(name, "OUTPUT1") == 0 ? -1 : 1;
    for (uint64_t i = 0; i < size / 4; i++) {
      if (context->is_float) {
        ((float*)content)[i] = ((const float*)a)[i] + (float)sign * ((const float*)b)[i];
      } else {
        ((int32_t*)content)[i] = ((const int32_t*)a)[i] + sign * ((const int32_t*)b)[i];
      }
    }
  }
  return 0;
}

static int library_run(void* context, uint32_t count, CustomPayload* payloads, CustomGetNextInput get_next_input,
                       CustomGetOutput get_output) {
  for (uint32_t p = 0; p < count; p++) {
    CustomPayload* payload = &payloads[p];
    uint64_t sizes[2] = {0, 0};
    const uint64_t limit = 1u << 30;
    uint8_t* a = whole_input(get_next_input, payload->input_context, "INPUT0", 1u << 20, limit, &sizes[0], NULL);
    uint8_t* b = whole_input(get_next_input, payload->input_context, "INPUT1", 1u << 20, limit, &sizes[1], NULL);
    if (a == NULL || b == NULL) {
      payload->error_code = NO_INPUT;
    } else if (sizes[0] != sizes[1]) {
      payload->error_code = UNEQUAL_INPUTS;
    } else {
      payload->error_code = respond(context, payload, a, b, sizes[0], get_output);
    }
    free(a);
    free(b);
  }
  return 0;
}
