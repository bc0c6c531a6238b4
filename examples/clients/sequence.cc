// A custom backend for simple_sequence: OUTPUT is the sum of INPUT over the sequence so far, INT32 [1].
//
// The batcher assigns a sequence to a slot, which is the index of its payload; START begins a new sum, READY = 0 marks a slot
// without a request. Compiled with -DBY_CORRELATION_ID, for simple_dyna_sequence: one sum for each CORRID, which is added to the
// last sum of its sequence (END).
#include "custom.h"

#include <cstring>
#include <map>

namespace {

enum Error { NO_INPUT = 1, NO_OUTPUT };

// One sum for each slot, or each correlation id.
typedef std::map<uint64_t, int32_t> Sums;

// Reads a tensor of one number, which may arrive in several blocks.
template <typename Number>
bool Read(CustomGetNextInputV2 next, void* context, const char* name, Number* value) {
  char bytes[sizeof(Number)];
  for (size_t have = 0;;) {
    const void* block = nullptr;
    uint64_t size = sizeof(Number) - have;
    CustomMemoryType memory = CUSTOM_MEMORY_CPU;
    int64_t device = 0;
    if (have == sizeof(Number)) break;
    if (!next(context, name, &block, &size, &memory, &device)) return false;
    if (block == nullptr || memory == CUSTOM_MEMORY_GPU || size > sizeof(Number) - have) return false;
    std::memcpy(bytes + have, block, size);
    have += size;
  }
  std::memcpy(value, bytes, sizeof(Number));
  return true;
}

int Step(Sums* sums, uint64_t slot, CustomPayload* payload, CustomGetNextInputV2 next, CustomGetOutputV2 get_output) {
  void* from = payload->input_context;
  int32_t start = 0, ready = 0, end = 0, input = 0;
  if (!Read(next, from, "START", &start) || !Read(next, from, "READY", &ready)) return NO_INPUT;
  if (ready == 0) return 0;
  if (!Read(next, from, "INPUT", &input)) return NO_INPUT;
#ifdef BY_CORRELATION_ID
  if (!Read(next, from, "CORRID", &slot) || !Read(next, from, "END", &end)) return NO_INPUT;
#endif

  int32_t sum = start != 0 ? input : (*sums)[slot] + input;
  if (end != 0) {
    sum += static_cast<int32_t>(slot);
    sums->erase(slot);
  } else {
    (*sums)[slot] = sum;
  }

  if (payload->output_cnt == 0) return 0;
  int64_t shape[] = {1, 1};
  void* output = nullptr;
  CustomMemoryType memory = CUSTOM_MEMORY_CPU;
  int64_t device = 0;
  if (!get_output(payload->output_context, "OUTPUT", 2, shape, sizeof sum, &output, &memory, &device)) return NO_OUTPUT;
  if (output != nullptr) std::memcpy(output, &sum, sizeof sum);
  return 0;
}

}  // namespace

uint32_t CustomVersion() { return 2; }

int CustomInitialize(const CustomInitializeData*, void** context) {
  *context = new Sums;
  return 0;
}

int CustomFinalize(void* context) {
  delete static_cast<Sums*>(context);
  return 0;
}

const char* CustomErrorString(void*, int error) {
  switch (error) {
    case NO_INPUT: return "an input or control tensor cannot be read";
    case NO_OUTPUT: return "no memory for OUTPUT";
    default: return "unknown error";
  }
}

int CustomExecuteV2(
    void* context, uint32_t payload_count, CustomPayload* payloads, CustomGetNextInputV2 next_input,
    CustomGetOutputV2 get_output) {
  for (uint32_t slot = 0; slot < payload_count; ++slot) {
    payloads[slot].error_code = Step(static_cast<Sums*>(context), slot, &payloads[slot], next_input, get_output);
  }
  return 0;
}
