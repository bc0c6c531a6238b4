/* Callbacks and entry points of generations B and C. */
#ifndef CUSTOM_CALLS_V1_H
#define CUSTOM_CALLS_V1_H

#include "custom_payload.h"

typedef bool (*CustomGetNextInput)(void* input_context, const char* name, const void** content,
                                   uint64_t* content_byte_size);
typedef bool (*CustomGetOutput)(void* output_context, const char* name, size_t shape_dim_cnt, int64_t* shape_dims,
                                uint64_t content_byte_size, void** content);

#ifdef __cplusplus
extern "C" {
#endif
int CustomFinalize(void* context);
const char* CustomErrorString(void* context, int error);
int CustomExecute(void* context, uint32_t payload_cnt, CustomPayload* payloads, CustomGetNextInput get_next_input,
                  CustomGetOutput get_output);
#ifdef __cplusplus
}
#endif

#endif
