/* The payload with shapes, shared by generations B, C and version 2. */
#ifndef CUSTOM_PAYLOAD_H
#define CUSTOM_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
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
} CustomPayload;

#ifdef __cplusplus
#define CUSTOM_LAYOUT static_assert
#else
#define CUSTOM_LAYOUT _Static_assert
#endif
CUSTOM_LAYOUT(offsetof(CustomPayload, input_cnt) == 4, "layout");
CUSTOM_LAYOUT(offsetof(CustomPayload, input_names) == 8, "layout");
CUSTOM_LAYOUT(offsetof(CustomPayload, input_shape_dim_cnts) == 16, "layout");
CUSTOM_LAYOUT(offsetof(CustomPayload, input_shape_dims) == 24, "layout");
CUSTOM_LAYOUT(offsetof(CustomPayload, output_cnt) == 32, "layout");
CUSTOM_LAYOUT(offsetof(CustomPayload, required_output_names) == 40, "layout");
CUSTOM_LAYOUT(offsetof(CustomPayload, input_context) == 48, "layout");
CUSTOM_LAYOUT(offsetof(CustomPayload, output_context) == 56, "layout");
CUSTOM_LAYOUT(offsetof(CustomPayload, error_code) == 64, "layout");
CUSTOM_LAYOUT(sizeof(CustomPayload) == 72, "layout");

#endif
