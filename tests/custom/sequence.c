/* OUTPUT is the running sum of INPUT (INT32 [1]), one sum per slot: START resets it, READY = 0 marks an empty slot.
   If the configuration has a control tensor for the correlation id (`oldest`), one sum per id.

   Compiled with -DLOOK_AT_EMPTY_SLOTS it reads the inputs of empty slots and requests their outputs; it fails unless
   inputs are zeros of finite length and outputs have no memory. */
#include "generation.h"

enum { NO_MEMORY = 1, ON_A_GPU, NO_SEQUENCES, NO_CONTROL, NO_INPUT, NO_OUTPUT, NOT_EMPTY, TOO_MANY };
enum { SLOTS = 256, KIND_READY = 1, KIND_CORRELATION = 3 };

typedef struct {
  bool batches, by_id, has_ready;
  int32_t sums[SLOTS];
  uint64_t ids[SLOTS];
} Context;

static bool has_control(Bytes config, int64_t kind) {
  Bytes batching = find_bytes(config, CONFIG_SEQUENCE_BATCHING, 0);
  Field input;
  for (unsigned i = 0; find_field(batching, 2, i, &input); i++) {
    if (find_number(find_bytes(input.bytes, 2, 0), 1) == kind) return true;
  }
  return false;
}

static int library_start(const Start* start, void** context) {
  Field batching;
  if (start->gpu != -1) return ON_A_GPU;
  if (!find_field(start->config, CONFIG_SEQUENCE_BATCHING, 0, &batching)) return NO_SEQUENCES;
  Context* made = calloc(1, sizeof *made);
  if (made == NULL) return NO_MEMORY;
  made->batches = find_number(start->config, CONFIG_MAX_BATCH_SIZE) > 0;
  made->by_id = has_control(start->config, KIND_CORRELATION);
  made->has_ready = has_control(start->config, KIND_READY);
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
    case ON_A_GPU: return "sequences are added up on the CPU only";
    case NO_SEQUENCES: return "the configuration has no sequence_batching";
    case NO_CONTROL: return "a control tensor cannot be read";
    case NO_INPUT: return "INPUT cannot be read";
    case NO_OUTPUT: return "no memory for OUTPUT";
    case NOT_EMPTY: return "an empty slot is not empty";
    case TOO_MANY: return "more slots or sequences than sums";
    default: return NULL;
  }
}

/* A tensor of one number. A second call must report its end. */
static bool number(CustomGetNextInput get, void* context, const char* name, size_t width, void* value) {
  uint64_t size;
  uint8_t* bytes = whole_input(get, context, name, width, 1024, &size, NULL);
  bool good = bytes != NULL && size == width;
  if (good) memcpy(value, bytes, width);
  free(bytes);
  return good;
}

static int empty_slot(const Context* context, CustomPayload* payload, CustomGetNextInput get_next_input,
                      CustomGetOutput get_output) {
#ifdef LOOK_AT_EMPTY_SLOTS
  uint64_t size;
  uint8_t* bytes = whole_input(get_next_input, payload->input_context, "INPUT", 4, 1024, &size, NULL);
  bool zeros = bytes != NULL && size == 4 && memcmp(bytes, "\0\0\0", 4) == 0;
  free(bytes);
#ifndef WITHOUT_HINTS
  /* An input of any name has the size of the first hint. */
  bytes = whole_input(get_next_input, payload->input_context, "ANYTHING", 12, 1024, &size, NULL);
  zeros = zeros && bytes != NULL && size == 12 && memcmp(bytes, "\0\0\0\0\0\0\0\0\0\0\0", 12) == 0;
  free(bytes);
#endif
  if (!zeros) return NOT_EMPTY;
  int64_t shape[2] = {1, 1};
  void* content = &size;
  bool given = ask_output(get_output, payload->output_context, "OUTPUT", context->batches ? 2 : 1, shape, 4, &content);
  trace("empty slot: output %s", !given ? "refused" : content == NULL ? "without memory" : "with memory");
  return given && content != NULL ? NOT_EMPTY : 0;
#else
  (void)context, (void)payload, (void)get_next_input, (void)get_output;
  return 0;
#endif
}

static int step(Context* context, uint32_t slot, CustomPayload* payload, CustomGetNextInput get_next_input,
                CustomGetOutput get_output) {
  void* input = payload->input_context;
  int32_t start = 0, ready = 1, value = 0;
  if (!number(get_next_input, input, "START", 4, &start)) return NO_CONTROL;
  if (context->has_ready && !number(get_next_input, input, "READY", 4, &ready)) return NO_CONTROL;
  if (ready == 0) return empty_slot(context, payload, get_next_input, get_output);
  if (!number(get_next_input, input, "INPUT", 4, &value)) return NO_INPUT;
  if (context->by_id) {
    uint64_t id = 0;
    if (!number(get_next_input, input, "CORRID", 8, &id)) return NO_CONTROL;
    for (slot = 0; slot < SLOTS && context->ids[slot] != 0 && context->ids[slot] != id;) slot++;
    if (slot < SLOTS) context->ids[slot] = id;
  }
  if (slot >= SLOTS) return TOO_MANY;
  context->sums[slot] = start != 0 ? value : context->sums[slot] + value;
  if (!is_required(payload, "OUTPUT")) return 0;
  int64_t shape[2] = {1, 1};
  void* content = NULL;
  if (!ask_output(get_output, payload->output_context, "OUTPUT", context->batches ? 2 : 1, shape, 4, &content)) {
    return NO_OUTPUT;
  }
  if (content != NULL) memcpy(content, &context->sums[slot], 4);
  return 0;
}

static int library_run(void* context, uint32_t count, CustomPayload* payloads, CustomGetNextInput get_next_input,
                       CustomGetOutput get_output) {
  trace("batch of %u", count);
  for (uint32_t p = 0; p < count; p++) {
    payloads[p].error_code = step(context, p, &payloads[p], get_next_input, get_output);
  }
  return 0;
}
