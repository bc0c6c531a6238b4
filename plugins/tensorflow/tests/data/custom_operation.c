/* The operation TrtsDouble, y = 2 x, as a library of custom operations: through TensorFlow's C API, which needs no headers of
   one release. */

#include <stddef.h>
#include <stdint.h>

typedef struct TF_Status TF_Status;
typedef struct TF_Tensor TF_Tensor;
typedef struct TF_OpKernelContext TF_OpKernelContext;
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;

TF_Status *TF_NewStatus(void);
void TF_DeleteStatus(TF_Status *);
TF_OpDefinitionBuilder *TF_NewOpDefinitionBuilder(const char *);
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder *, const char *);
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder *, const char *);
void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder *,
                                                     void (*)(TF_ShapeInferenceContext *, TF_Status *));
void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext *, TF_Status *);
void TF_RegisterOpDefinition(TF_OpDefinitionBuilder *, TF_Status *);
TF_KernelBuilder *TF_NewKernelBuilder(const char *, const char *, void *(*)(void *),
                                      void (*)(void *, TF_OpKernelContext *), void (*)(void *));
void TF_RegisterKernelBuilder(const char *, TF_KernelBuilder *, TF_Status *);
void TF_GetInput(TF_OpKernelContext *, int, TF_Tensor **, TF_Status *);
TF_Tensor *TF_AllocateOutput(TF_OpKernelContext *, int, int, const int64_t *, int, size_t, TF_Status *);
int TF_NumDims(const TF_Tensor *);
int64_t TF_Dim(const TF_Tensor *, int);
size_t TF_TensorByteSize(const TF_Tensor *);
void *TF_TensorData(const TF_Tensor *);
void TF_DeleteTensor(TF_Tensor *);

static void compute(void *kernel, TF_OpKernelContext *context) {
  (void)kernel;
  TF_Status *status = TF_NewStatus();
  TF_Tensor *x;
  TF_GetInput(context, 0, &x, status);
  int64_t dims[8];
  int rank = TF_NumDims(x);
  for (int i = 0; i < rank && i < 8; i++) dims[i] = TF_Dim(x, i);
  size_t bytes = TF_TensorByteSize(x);
  TF_Tensor *y = TF_AllocateOutput(context, 0, 1, dims, rank, bytes, status);
  for (size_t i = 0; i < bytes / sizeof(float); i++) {
    ((float *)TF_TensorData(y))[i] = 2 * ((float *)TF_TensorData(x))[i];
  }
  TF_DeleteTensor(x);
  TF_DeleteTensor(y);
  TF_DeleteStatus(status);
}

__attribute__((constructor)) static void register_operation(void) {
  TF_Status *status = TF_NewStatus();
  TF_OpDefinitionBuilder *operation = TF_NewOpDefinitionBuilder("TrtsDouble");
  TF_OpDefinitionBuilderAddInput(operation, "x: float");
  TF_OpDefinitionBuilderAddOutput(operation, "y: float");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(operation, TF_ShapeInferenceContextSetUnknownShape);
  TF_RegisterOpDefinition(operation, status);
  TF_RegisterKernelBuilder("TrtsDouble", TF_NewKernelBuilder("TrtsDouble", "CPU", 0, compute, 0), status);
  TF_DeleteStatus(status);
}
