// Tensors of custom.h, and its entry points for a class.
#pragma once

#include <string>
#include <vector>

#include "custom.h"

// One request of a batch.
class Request {
 public:
  Request(CustomPayload* payload, CustomGetNextInputV2 next_input, CustomGetOutputV2 get_output)
      : payload_(payload), next_input_(next_input), get_output_(get_output) {}

  uint32_t BatchSize() const { return payload_->batch_size; }

  // Reads a whole input, which may arrive in several blocks. An idle slot of a sequence model has
  // inputs of the size of the hint.
  bool Read(const char* name, uint64_t hint, std::string* bytes) const {
    for (;;) {
      const void* block = nullptr;
      uint64_t size = hint;
      CustomMemoryType memory = CUSTOM_MEMORY_CPU;
      int64_t device = 0;
      if (!next_input_(payload_->input_context, name, &block, &size, &memory, &device)) return false;
      if (block == nullptr) return true;
      if (memory == CUSTOM_MEMORY_GPU) return false;
      bytes->append(static_cast<const char*>(block), size);
    }
  }

  // Gives memory for the model's only output, or null if it was not requested.
  bool Output(std::vector<int64_t> shape, uint64_t size, void** content) const {
    *content = nullptr;
    if (payload_->output_cnt == 0) return true;
    CustomMemoryType memory = CUSTOM_MEMORY_CPU;
    int64_t device = 0;
    const char* name = payload_->required_output_names[0];
    return get_output_(payload_->output_context, name, shape.size(), shape.data(), size, content, &memory, &device) &&
           memory != CUSTOM_MEMORY_GPU;
  }

 private:
  CustomPayload* payload_;
  CustomGetNextInputV2 next_input_;
  CustomGetOutputV2 get_output_;
};

// An instance is an object of CLASS, which has `int Run(uint32_t slot, const Request&)`, whose
// result is 0 or the number of an error, and `const char* Explain(int error)`.
#define CUSTOM_BACKEND(CLASS)                                                                          \
  uint32_t CustomVersion() { return 2; }                                                               \
  int CustomInitialize(const CustomInitializeData*, void** context) {                                  \
    *context = new CLASS;                                                                              \
    return 0;                                                                                          \
  }                                                                                                    \
  int CustomFinalize(void* context) {                                                                  \
    delete static_cast<CLASS*>(context);                                                               \
    return 0;                                                                                          \
  }                                                                                                    \
  const char* CustomErrorString(void* context, int error) { return static_cast<CLASS*>(context)->Explain(error); } \
  int CustomExecuteV2(                                                                                 \
      void* context, uint32_t payload_count, CustomPayload* payloads, CustomGetNextInputV2 next_input, \
      CustomGetOutputV2 get_output) {                                                                  \
    for (uint32_t i = 0; i < payload_count; ++i) {                                                     \
      const Request request(&payloads[i], next_input, get_output);                                     \
      payloads[i].error_code = static_cast<CLASS*>(context)->Run(i, request);                          \
    }                                                                                                  \
    return 0;                                                                                          \
  }
