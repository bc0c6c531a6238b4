/* OUTPUT0 is INPUT0, of any type including strings. Generation A has no shapes: it copies the bytes, and the server
   infers the shape.

   With a second input HINT (INT32 [1]) it reads INPUT0 with that size hint, or with the remaining size when HINT is 0;
   BLOCKS (INT32 [1]), if requested, is the number of blocks. */
#include "generation.h"

enum { NO_MEMORY = 1, NO_INPUT, NO_OUTPUT };

typedef struct {
  bool batches, has_hint;
} Context;

static int library_start(const Start* start, void** context) {
  Context* made = malloc(sizeof *made);
  if (made == NULL) return NO_MEMORY;
  made->batches = find_number(start->config, CONFIG_MAX_BATCH_SIZE) > 0;
  made->has_hint = find_bytes(start->config, CONFIG_INPUT, 1).size > 0;
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
    case NO_INPUT: return "an input cannot be read";
    case NO_OUTPUT: return "no memory for an output";
    default: return NULL;
  }
}

#define LIMIT (1u << 30)

/* Passes the remaining size as the hint, like libraries that know their sizes. */
static uint8_t* by_remainder(CustomGetNextInput get, void* context, uint64_t* size, unsigned* blocks) {
  uint64_t total = *size, got = 0;
  uint8_t* bytes = malloc(total + 1);
  *blocks = 0;
  while (bytes != NULL) {
    const void* content = NULL;
    uint64_t block = total - got;
    if (!next_block(get, context, "INPUT0", &content, &block) || (content != NULL && got + block > total)) {
      free(bytes);
      return NULL;
    }
    if (content == NULL) {
      *size = got;
      return bytes;
    }
    memcpy(bytes + got, content, block);
    got += block;
    ++*blocks;
  }
  return NULL;
}

static int serve(const Context* context, const CustomPayload* payload, CustomGetNextInput get_next_input,
                 CustomGetOutput get_output) {
  int32_t hint = 1 << 20;
  uint64_t size = 0;
  if (context->has_hint) {
    uint8_t* bytes = whole_input(get_next_input, payload->input_context, "HINT", 4, LIMIT, &size, NULL);
    if (bytes == NULL || size < 4) {
      free(bytes);
      return NO_INPUT;
    }
    memcpy(&hint, bytes, 4);
    free(bytes);
  }
  unsigned blocks = 0;
  uint8_t* values;
  int64_t shape[16] = {0};
  size_t rank = 0;
  if (context->batches) shape[rank++] = payload->batch_size;
#ifndef GENERATION_A
  for (uint32_t i = 0; i < payload->input_cnt; i++) {
    if (strcmp(payload->input_names[i], "INPUT0") != 0) continue;
    for (size_t d = 0; d < payload->input_shape_dim_cnts[i]; d++) shape[rank++] = payload->input_shape_dims[i][d];
  }
#endif
  if (hint == 0) { /* models of bytes */
    size = 1;
    for (size_t d = 0; d < rank; d++) size *= (uint64_t)shape[d];
    values = by_remainder(get_next_input, payload->input_context, &size, &blocks);
  } else {
    values = whole_input(get_next_input, payload->input_context, "INPUT0", (uint64_t)hint, LIMIT, &size, &blocks);
  }
  if (values == NULL) return NO_INPUT;
  void* content = NULL;
  int error = 0;
  if (is_required(payload, "OUTPUT0")) {
    if (!ask_output(get_output, payload->output_context, "OUTPUT0", rank, shape, size, &content)) {
      error = NO_OUTPUT;
    } else if (content != NULL) {
      memcpy(content, values, size);
    }
  }
  free(values);
  if (error == 0 && is_required(payload, "BLOCKS")) {
    int64_t single[2] = {1, 1};
    if (!ask_output(get_output, payload->output_context, "BLOCKS", context->batches ? 2 : 1, single, 4, &content)) {
      error = NO_OUTPUT;
    } else if (content != NULL) {
      memcpy(content, &(int32_t){(int32_t)blocks}, 4);
    }
  }
  return error;
}

static int library_run(void* context, uint32_t count, CustomPayload* payloads, CustomGetNextInput get_next_input,
                       CustomGetOutput get_output) {
  for (uint32_t p = 0; p < count; p++) {
    payloads[p].error_code = serve(context, &payloads[p], get_next_input, get_output);
  }
  return 0;
}
