/* The initialisation data of generation C and version 2. */
#ifndef CUSTOM_START_H
#define CUSTOM_START_H

#include "custom_payload.h"

typedef struct {
  const char* instance_name;
  const char* serialized_model_config; /* no NUL at its end */
  size_t serialized_model_config_size;
  int gpu_device_id; /* -1: CPU */
  size_t server_parameter_cnt;
  const char** server_parameters;
} CustomInitializeData;

CUSTOM_LAYOUT(offsetof(CustomInitializeData, serialized_model_config) == 8, "layout");
CUSTOM_LAYOUT(offsetof(CustomInitializeData, serialized_model_config_size) == 16, "layout");
CUSTOM_LAYOUT(offsetof(CustomInitializeData, gpu_device_id) == 24, "layout");
CUSTOM_LAYOUT(offsetof(CustomInitializeData, server_parameter_cnt) == 32, "layout");
CUSTOM_LAYOUT(offsetof(CustomInitializeData, server_parameters) == 40, "layout");

enum { SERVER_PARAMETER_VERSION = 0, SERVER_PARAMETER_MODEL_REPOSITORY = 1 };

#ifdef __cplusplus
extern "C" {
#endif
uint32_t CustomVersion(void);
int CustomInitialize(const CustomInitializeData* data, void** context);
#ifdef __cplusplus
}
#endif

#endif
