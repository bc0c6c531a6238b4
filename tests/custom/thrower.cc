// Generation B in C++: an exception leaves execute, where nothing catches it.
#include "custom_b.h"

#include <stdexcept>

int CustomInitialize(const char*, size_t, int, void** context) {
  *context = nullptr;
  return 0;
}

int CustomFinalize(void*) { return 0; }

const char* CustomErrorString(void*, int) { return nullptr; }

int CustomExecute(void*, uint32_t, CustomPayload*, CustomGetNextInput, CustomGetOutput) {
  throw std::runtime_error("thrown out of execute");
}
