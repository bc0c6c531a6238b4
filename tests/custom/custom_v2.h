/* The legacy custom backend interface, version 2, in both arities: v1.6 and v1.7 pass a memory type (CUSTOM_ARITY_TYPE),
   v1.8 to v1.15 its id as well. Both report version 2. */
#ifndef CUSTOM_V2_H
#define CUSTOM_V2_H

#include "custom_payload.h"
#include "custom_start.h"

typedef enum { CUSTOM_MEMORY_CPU = 0, CUSTOM_MEMORY_GPU = 1, CUSTOM_MEMORY_CPU_PINNED = 2 } CustomMemoryType;

#ifdef CUSTOM_ARITY_TYPE
typedef bool (*CustomGetNextInput)(void* input_context, const char* name, const void** content,
                                   uint64_t* content_byte_size, CustomMemoryType* memory_type);
typedef bool (*CustomGetOutput)(void* output_context, const char* name, size_t shape_dim_cnt, int64_t* shape_dims,
                                uint64_t content_byte_size, void** content, CustomMemoryType* memory_type);
#else
typedef bool (*CustomGetNextInput)(void* input_context, const char* name, const void** content,
                                   uint64_t* content_byte_size, CustomMemoryType* memory_type,
                                   int64_t* memory_type_id);
typedef bool (*CustomGetOutput)(void* output_context, const char* name, size_t shape_dim_cnt, int64_t* shape_dims,
                                uint64_t content_byte_size, void** content, CustomMemoryType* memory_type,
                                int64_t* memory_type_id);
#endif

int CustomFinalize(void* context);
const char* CustomErrorString(void* context, int error);
int CustomExecuteV2(void* context, uint32_t payload_cnt, CustomPayload* payloads, CustomGetNextInput get_next_input,
                    CustomGetOutput get_output);

#endif
