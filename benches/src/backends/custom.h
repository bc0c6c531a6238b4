// What the old interface's generation B hands a library, for the two sources beside this file.

#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t batch_size, input_cnt;
  const char** input_names;
  const size_t* input_shape_dim_cnts;
  const int64_t** input_shape_dims;
  uint32_t output_cnt;
  const char** required_output_names;
  void *input_context, *output_context;
  int error_code;
} Payload;

typedef bool (*GetNextInput)(void* context, const char* name, const void** content, uint64_t* bytes);
typedef bool (*GetOutput)(
    void* context, const char* name, size_t dims, int64_t* shape, uint64_t bytes, void** content);
