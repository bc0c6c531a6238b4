/* A fake of a compiled model, as AOTInductor makes it of
 *
 *     def forward(self, x, *, bias):              # both [batch, n, 3]
 *         total = x + bias
 *         bias.add_(1)
 *         return {"total": total, "turned": x.transpose(1, 2), "same": x}
 *
 * As compiled C++ it has a unique symbol. A run fails if another model has used it. THREAD_VARIABLE: as
 * newer releases of torch it registers a destructor for the calling thread.
 * GONE: it calls a function that torch lacks. FAILS: its runs fail. Test double. */

#include "torch.h"

#include <stdlib.h>
#include <string.h>

#define VALUE "{\"type\": null, \"context\": null, \"children_spec\": []}"
#define NODE(type, context, children) \
    "{\"type\": \"builtins." type "\", \"context\": \"" context "\", \"children_spec\": [" children "]}"

static const char IN_SPEC[] = "[1, " NODE("tuple", "null",
                                          NODE("tuple", "null", VALUE) ", " NODE("dict", "[\\\"bias\\\"]", VALUE)) "]";
static const char OUT_SPEC[] =
    "[1, " NODE("dict", "[\\\"total\\\", \\\"turned\\\", \\\"same\\\"]", VALUE ", " VALUE ", " VALUE) "]";

#ifdef GONE
int32_t aoti_torch_cpu_gone(void);
#endif

extern const void *aoti_static_variable;
const void *aoti_static_variable;
__asm__(".type aoti_static_variable, %gnu_unique_object");

#ifdef THREAD_VARIABLE
/* Of the C++ library. */
int __cxa_thread_atexit(void (*destructor)(void *), void *variable, void *library);
extern void *__dso_handle;
int32_t aoti_torch_device_type_cpu(void);

static void forget(void *variable) { (void)variable; }
#endif

int32_t AOTInductorModelContainerCreateWithDevice(void **container, size_t runs, const char *device, const char *dir);
int32_t AOTInductorModelContainerCreateWithDevice(void **container, size_t runs, const char *device, const char *dir) {
    int32_t code = runs == 0 || dir || strcmp(device, "cpu") != 0;
    *container = malloc(1);
#ifdef GONE
    code |= aoti_torch_cpu_gone();
#endif
#ifdef THREAD_VARIABLE
    code |= __cxa_thread_atexit(forget, *container, &__dso_handle) | aoti_torch_device_type_cpu();
#endif
    return code;
}

int32_t AOTInductorModelContainerDelete(void *container);
int32_t AOTInductorModelContainerDelete(void *container) {
    free(container);
    return 0;
}

int32_t AOTInductorModelContainerGetNumInputs(void *container, size_t *count);
int32_t AOTInductorModelContainerGetNumInputs(void *container, size_t *count) {
    (void)container;
    *count = 2;
    return 0;
}

int32_t AOTInductorModelContainerGetNumOutputs(void *container, size_t *count);
int32_t AOTInductorModelContainerGetNumOutputs(void *container, size_t *count) {
    (void)container;
    *count = 3;
    return 0;
}

int32_t AOTInductorModelContainerGetCallSpec(void *container, const char **in_spec, const char **out_spec);
int32_t AOTInductorModelContainerGetCallSpec(void *container, const char **in_spec, const char **out_spec) {
    (void)container;
    *in_spec = IN_SPEC;
    *out_spec = OUT_SPEC;
    return 0;
}

int32_t AOTInductorModelContainerRun(void *container, Tensor **inputs, size_t n_inputs, Tensor **outputs,
                                     size_t n_outputs, void *stream, void *executor);
int32_t AOTInductorModelContainerRun(void *container, Tensor **inputs, size_t n_inputs, Tensor **outputs,
                                     size_t n_outputs, void *stream, void *executor) {
    (void)container;
    if (n_inputs != 2 || n_outputs != 3 || stream || executor) {
        return 1;
    }
    if (aoti_static_variable && aoti_static_variable != IN_SPEC) {
        return 1;
    }
    aoti_static_variable = IN_SPEC;
    Tensor *x = inputs[0], *bias = inputs[1];
    int64_t count = x->sizes[0] * x->sizes[1] * x->sizes[2];
    float *total = calloc((size_t)count + 1, sizeof *total);
    for (int64_t at = 0; at < count; at++) {
        total[at] = ((float *)x->data)[at] + ((float *)bias->data)[at];
        ((float *)bias->data)[at] += 1;
    }
    int64_t turned_sizes[] = {x->sizes[0], x->sizes[2], x->sizes[1]};
    int64_t turned_strides[] = {x->strides[0], x->strides[2], x->strides[1]};
    int32_t code = aoti_torch_create_tensor_from_blob(total, 3, x->sizes, x->strides, 0, 6, 0, 0, &outputs[0]);
    outputs[0]->owned = (char *)total;
    code |= aoti_torch_create_tensor_from_blob(x->data, 3, turned_sizes, turned_strides, 0, 6, 0, 0, &outputs[1]);
    outputs[2] = x;
    aoti_torch_delete_tensor_object(bias);
#ifdef FAILS
    code = 1;
#endif
    return code;
}
