// Sizes of types and shapes of model configurations. C++11.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_V1_MODEL_CONFIG_H
#define TRTSERVER_CLIENT_V1_MODEL_CONFIG_H

#include <cstdint>
#include <vector>

#include "../model_config.pb.h"

namespace nvidia {
namespace inferenceserver {

typedef uint64_t CorrelationID;
typedef ::google::protobuf::RepeatedField<::google::protobuf::int64> DimsList;

// Bytes of an element; 0 for types whose elements differ in size.
inline size_t GetDataTypeByteSize(const DataType dtype) {
  switch (dtype) {
    case TYPE_BOOL:
    case TYPE_UINT8:
    case TYPE_INT8:
      return 1;
    case TYPE_UINT16:
    case TYPE_INT16:
    case TYPE_FP16:
    case TYPE_BF16:
      return 2;
    case TYPE_UINT32:
    case TYPE_INT32:
    case TYPE_FP32:
      return 4;
    case TYPE_UINT64:
    case TYPE_INT64:
    case TYPE_FP64:
      return 8;
    default:
      return 0;
  }
}

inline bool IsFixedSizeDataType(const DataType dtype) { return dtype != TYPE_STRING; }

// Number of elements; -1 if a dimension is variable, 0 without dimensions.
template <typename Dims>
int64_t GetElementCountOf(const Dims& dims) {
  int64_t count = 0;
  bool first = true;
  for (const int64_t dim : dims) {
    if (dim == -1) return -1;
    count = first ? dim : count * dim;
    first = false;
  }
  return count;
}
inline int64_t GetElementCount(const DimsList& dims) { return GetElementCountOf(dims); }
inline int64_t GetElementCount(const std::vector<int64_t>& dims) { return GetElementCountOf(dims); }
inline int64_t GetElementCount(const ModelInput& input) { return GetElementCountOf(input.dims()); }
inline int64_t GetElementCount(const ModelOutput& output) { return GetElementCountOf(output.dims()); }

// Bytes of one batch entry; -1 if type or shape is variable.
template <typename Dims>
int64_t GetByteSizeOf(const DataType dtype, const Dims& dims) {
  const size_t size = GetDataTypeByteSize(dtype);
  const int64_t count = GetElementCountOf(dims);
  return size == 0 || count == -1 ? -1 : count * static_cast<int64_t>(size);
}
inline int64_t GetByteSize(const DataType dtype, const DimsList& dims) { return GetByteSizeOf(dtype, dims); }
inline int64_t GetByteSize(const DataType dtype, const std::vector<int64_t>& dims) {
  return GetByteSizeOf(dtype, dims);
}
inline int64_t GetByteSize(const ModelInput& input) { return GetByteSizeOf(input.data_type(), input.dims()); }
inline int64_t GetByteSize(const ModelOutput& output) { return GetByteSizeOf(output.data_type(), output.dims()); }

}  // namespace inferenceserver
}  // namespace nvidia

#endif
