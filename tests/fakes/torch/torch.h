/* What the fakes of torch and of a compiled model share. Test double. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#define MAX_RANK 8

typedef struct {
    char *data;
    /* Freed with the tensor; null: the data is somebody else's. */
    char *owned;
    int64_t rank;
    int64_t sizes[MAX_RANK];
    int64_t strides[MAX_RANK];
    int32_t dtype;
} Tensor;

int32_t aoti_torch_create_tensor_from_blob(void *data, int64_t rank, const int64_t *sizes, const int64_t *strides,
                                           int64_t offset, int32_t dtype, int32_t device_type, int32_t device_index,
                                           Tensor **result);
int32_t aoti_torch_delete_tensor_object(Tensor *tensor);
