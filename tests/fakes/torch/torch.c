/* A fake of torch's library: tensors of FP32 and INT64 with sizes and strides, and the C functions that
 * plugins/pytorch calls. Test double. Numbers of types and devices are torch's. */

#include "torch.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER(name, value)    \
    int32_t name(void);        \
    int32_t name(void) {       \
        return value;          \
    }

NUMBER(aoti_torch_device_type_cpu, 0)
NUMBER(aoti_torch_layout_strided, 0)
NUMBER(aoti_torch_dtype_uint8, 0)
NUMBER(aoti_torch_dtype_int8, 1)
NUMBER(aoti_torch_dtype_int16, 2)
NUMBER(aoti_torch_dtype_int32, 3)
NUMBER(aoti_torch_dtype_int64, 4)
NUMBER(aoti_torch_dtype_float16, 5)
NUMBER(aoti_torch_dtype_float32, 6)
NUMBER(aoti_torch_dtype_float64, 7)
NUMBER(aoti_torch_dtype_bool, 11)
NUMBER(aoti_torch_dtype_bfloat16, 15)
NUMBER(aoti_torch_dtype_uint16, 27)
NUMBER(aoti_torch_dtype_uint32, 28)
NUMBER(aoti_torch_dtype_uint64, 29)

uint64_t aoti_torch_abi_version(void);
uint64_t aoti_torch_abi_version(void) {
    return (uint64_t)2 << 56 | (uint64_t)9 << 48 | (uint64_t)1 << 40;
}

int32_t aoti_torch_create_tensor_from_blob(void *data, int64_t rank, const int64_t *sizes, const int64_t *strides,
                                           int64_t offset, int32_t dtype, int32_t device_type, int32_t device_index,
                                           Tensor **result) {
    if (!data || rank > MAX_RANK || device_type != 0 || device_index != 0) {
        return 1;
    }
    Tensor *tensor = calloc(1, sizeof *tensor);
    *tensor = (Tensor){.data = (char *)data + 4 * offset, .rank = rank, .dtype = dtype};
    memcpy(tensor->sizes, sizes, (size_t)rank * sizeof *sizes);
    memcpy(tensor->strides, strides, (size_t)rank * sizeof *strides);
    *result = tensor;
    return 0;
}

int32_t aoti_torch_delete_tensor_object(Tensor *tensor) {
    free(tensor->owned);
    free(tensor);
    return 0;
}

int32_t aoti_torch_get_data_ptr(Tensor *tensor, void **data);
int32_t aoti_torch_get_data_ptr(Tensor *tensor, void **data) {
    *data = tensor->data;
    return 0;
}

int32_t aoti_torch_get_dim(Tensor *tensor, int64_t *rank);
int32_t aoti_torch_get_dim(Tensor *tensor, int64_t *rank) {
    *rank = tensor->rank;
    return 0;
}

int32_t aoti_torch_get_sizes(Tensor *tensor, int64_t **sizes);
int32_t aoti_torch_get_sizes(Tensor *tensor, int64_t **sizes) {
    *sizes = tensor->sizes;
    return 0;
}

int32_t aoti_torch_get_dtype(Tensor *tensor, int32_t *dtype);
int32_t aoti_torch_get_dtype(Tensor *tensor, int32_t *dtype) {
    *dtype = tensor->dtype;
    return 0;
}

int32_t aoti_torch_get_layout(Tensor *tensor, int32_t *layout);
int32_t aoti_torch_get_layout(Tensor *tensor, int32_t *layout) {
    (void)tensor;
    *layout = 0;
    return 0;
}

int32_t aoti_torch_get_device_type(Tensor *tensor, int32_t *type);
int32_t aoti_torch_get_device_type(Tensor *tensor, int32_t *type) {
    (void)tensor;
    *type = 0;
    return 0;
}

int32_t aoti_torch_is_contiguous(Tensor *tensor, bool *contiguous);
int32_t aoti_torch_is_contiguous(Tensor *tensor, bool *contiguous) {
    int64_t expected = 1;
    *contiguous = true;
    for (int64_t at = tensor->rank - 1; at >= 0; at--) {
        *contiguous &= tensor->sizes[at] == 1 || tensor->strides[at] == expected;
        expected *= tensor->sizes[at];
    }
    return 0;
}

/* Elements of four bytes. */
int32_t aoti_torch_copy_(Tensor *to, Tensor *from, int32_t later);
int32_t aoti_torch_copy_(Tensor *to, Tensor *from, int32_t later) {
    int64_t count = 1;
    for (int64_t at = 0; at < to->rank; at++) {
        count *= to->sizes[at];
    }
    for (int64_t nth = 0; nth < count; nth++) {
        int64_t rest = nth, source = 0, target = 0;
        for (int64_t at = to->rank - 1; at >= 0; at--) {
            int64_t index = rest % to->sizes[at];
            rest /= to->sizes[at];
            source += index * from->strides[at];
            target += index * to->strides[at];
        }
        memcpy(to->data + 4 * target, from->data + 4 * source, 4);
    }
    return later;
}
