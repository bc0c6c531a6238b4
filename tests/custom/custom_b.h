/* The legacy custom backend interface, generations B11 and B (v0.11 and 0.12): as printed in the 0.12 manual. */
#ifndef CUSTOM_B_H
#define CUSTOM_B_H

#include "custom_calls_v1.h"

#ifdef __cplusplus
extern "C"
#endif
int CustomInitialize(const char* serialized_model_config, size_t serialized_model_config_size, int gpu_device_id,
                     void** context);

#endif
