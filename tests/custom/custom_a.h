/* The legacy custom backend interface, generation A (v0.10): payloads without shapes, a configuration without a size.
   Written from a description of the interface. */
#ifndef CUSTOM_A_H
#define CUSTOM_A_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t batch_size;
  uint32_t output_cnt;
  const char** required_output_names;
  void* input_context;
  void* output_context;
  int error_code;
} CustomPayload;

_Static_assert(offsetof(CustomPayload, output_cnt) == 4, "layout");
_Static_assert(offsetof(CustomPayload, required_output_names) == 8, "layout");
_Static_assert(offsetof(CustomPayload, input_context) == 16, "layout");
_Static_assert(offsetof(CustomPayload, output_context) == 24, "layout");
_Static_assert(offsetof(CustomPayload, error_code) == 32, "layout");
_Static_assert(sizeof(CustomPayload) == 40, "layout");

typedef bool (*CustomGetNextInput)(void* input_context, const char* name, const void** content,
                                   uint64_t* content_byte_size);
typedef bool (*CustomGetOutput)(void* output_context, const char* name, uint64_t content_byte_size, void** content);

int CustomInitialize(const char* serialized_model_config, int gpu_device_id, void** context);
int CustomFinalize(void* context);
const char* CustomErrorString(void* context, int error);
int CustomExecute(void* context, uint32_t payload_cnt, CustomPayload* payloads, CustomGetNextInput get_next_input,
                  CustomGetOutput get_output);

#endif
