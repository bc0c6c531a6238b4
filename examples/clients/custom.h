// The interface of custom backends, version 2 as of TRTIS v1.8, as far as the libraries in this
// directory need it (docs/custom.md).
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct CustomInitializeData;

struct CustomPayload {
  uint32_t batch_size;
  uint32_t input_cnt;
  const char** input_names;
  const size_t* input_shape_dim_cnts;
  const int64_t** input_shape_dims;
  uint32_t output_cnt;
  const char** required_output_names;
  void* input_context;
  void* output_context;
  int error_code;
};

enum CustomMemoryType { CUSTOM_MEMORY_CPU = 0, CUSTOM_MEMORY_GPU = 1, CUSTOM_MEMORY_CPU_PINNED = 2 };

// Gives the next block of an input, or null at its end. `size` is a hint on entry, the block's size
// on return.
typedef bool (*CustomGetNextInputV2)(
    void* context, const char* name, const void** content, uint64_t* size, CustomMemoryType* memory, int64_t* device);

// Gives memory for an output, or null if it was not requested. The shape includes the batch.
typedef bool (*CustomGetOutputV2)(
    void* context, const char* name, size_t dim_count, int64_t* dims, uint64_t size, void** content,
    CustomMemoryType* memory, int64_t* device);

uint32_t CustomVersion();
int CustomInitialize(const CustomInitializeData* data, void** context);
int CustomFinalize(void* context);
const char* CustomErrorString(void* context, int error);
int CustomExecuteV2(
    void* context, uint32_t payload_count, CustomPayload* payloads, CustomGetNextInputV2 next_input,
    CustomGetOutputV2 get_output);

}  // extern "C"
