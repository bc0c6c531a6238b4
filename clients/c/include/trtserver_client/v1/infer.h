// InferContext of the v1 C++ client: inputs, options, runs and results of one model. C++11.
//
// One class serves programs of all releases: the forms of AsyncRun, GetAsyncRunResults and
// GetReadyAsyncRequest differ in their parameters, and each has the behaviour of its release. Calls
// on one context are made by one thread at a time; GetAsyncRunResults may be called from any.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_V1_INFER_H
#define TRTSERVER_CLIENT_V1_INFER_H

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../api.pb.h"
#include "error.h"
#include "model_config.h"

namespace nvidia {
namespace inferenceserver {
namespace client {

class InferContext {
 public:
  // An input of the model. Values that are set stay set from run to run until Reset.
  class Input {
   public:
    virtual ~Input() {}
    virtual const std::string& Name() const = 0;
    // Bytes of one batch entry; -1 if type or shape is variable.
    virtual int64_t ByteSize() const = 0;
    // Bytes of all values that are set.
    virtual size_t TotalByteSize() const = 0;
    virtual DataType DType() const = 0;
    virtual bool IsShapeTensor() const = 0;
    virtual ModelInput::Format Format() const = 0;
    // Shape in the model's configuration, without the batch; -1 is variable.
    virtual const DimsList& Dims() const = 0;
    // Forgets the values that are set.
    virtual Error Reset() = 0;
    // The shape that SetShape set; empty without one.
    virtual const std::vector<int64_t>& Shape() const = 0;
    virtual Error SetShape(const std::vector<int64_t>& dims) = 0;
    // Sets one batch entry; called once for each. The memory is not copied and must stay until the
    // run completes.
    virtual Error SetRaw(const uint8_t* input, size_t input_byte_size) = 0;
    virtual Error SetRaw(const std::vector<uint8_t>& input) = 0;
    // Sets one batch entry of a STRING input. The strings are copied.
    virtual Error SetFromString(const std::vector<std::string>& input) = 0;
    // Takes the values of the whole batch from a registered region. Set the options first: they
    // give the batch size.
    virtual Error SetSharedMemory(const std::string& name, size_t offset, size_t byte_size) = 0;
  };

  // An output of the model.
  class Output {
   public:
    virtual ~Output() {}
    virtual const std::string& Name() const = 0;
    virtual DataType DType() const = 0;
    virtual bool IsShapeTensor() const = 0;
    virtual const DimsList& Dims() const = 0;
  };

  // One output of a completed request. It may be kept longer than its context.
  class Result {
   public:
    virtual ~Result() {}
    enum ResultFormat { RAW = 0, CLASS = 1 };

    virtual const std::string& ModelName() const = 0;
    virtual int64_t ModelVersion() const = 0;
    virtual const std::shared_ptr<Output> GetOutput() const = 0;
    // Shape without the batch.
    virtual Error GetRawShape(std::vector<int64_t>* shape) const = 0;
    // The bytes of a batch entry as a vector, which copies them once.
    virtual Error GetRaw(size_t batch_idx, const std::vector<uint8_t>** buf) const = 0;
    // The bytes of a batch entry in place.
    virtual Error GetRaw(size_t batch_idx, const uint8_t** buf, size_t* byte_size) const = 0;
    // The next bytes of a batch entry; the cursor moves behind them.
    virtual Error GetRawAtCursor(size_t batch_idx, const uint8_t** buf, size_t adv_byte_size) = 0;
    // The next value of a batch entry; a string is read with its length.
    template <typename T>
    Error GetRawAtCursor(size_t batch_idx, T* out);

    struct ClassResult {
      size_t idx;
      float value;
      // Empty if the model has no label for it.
      std::string label;
    };
    virtual Error GetClassCount(size_t batch_idx, size_t* cnt) const = 0;
    virtual Error GetClassAtCursor(size_t batch_idx, ClassResult* result) = 0;
    virtual Error ResetCursors() = 0;
    virtual Error ResetCursor(size_t batch_idx) = 0;
  };

  // What later runs ask for.
  class Options {
   public:
    virtual ~Options() {}
    static Error Create(std::unique_ptr<Options>* options);
    virtual bool Flag(InferRequestHeader::Flag flag) const = 0;
    virtual void SetFlag(InferRequestHeader::Flag flag, bool value) = 0;
    virtual uint32_t Flags() const = 0;
    virtual void SetFlags(uint32_t flags) = 0;
    virtual size_t BatchSize() const = 0;
    virtual void SetBatchSize(size_t batch_size) = 0;
    virtual uint32_t Priority() const = 0;
    virtual void SetPriority(uint32_t priority) = 0;
    virtual uint64_t Timeout() const = 0;
    // Microseconds that the request may wait in the server's queue.
    virtual void SetTimeout(uint64_t timeout_us) = 0;
    virtual CorrelationID CorrelationId() const = 0;
    // 0 keeps the correlation id of the context, another replaces it.
    virtual void SetCorrelationId(CorrelationID correlation_id) = 0;
    virtual Error AddRawResult(const std::shared_ptr<InferContext::Output>& output) = 0;
    virtual Error AddClassResult(const std::shared_ptr<InferContext::Output>& output, uint64_t k) = 0;
    // The server writes the tensor into a registered region.
    virtual Error AddSharedMemoryResult(const std::shared_ptr<InferContext::Output>& output, const std::string& name,
                                        size_t offset, size_t byte_size) = 0;
  };

  // An asynchronous run.
  class Request {
   public:
    virtual ~Request() {}
    virtual uint64_t Id() const = 0;
  };

  // Sums over the completed requests of a context.
  struct Stat {
    size_t completed_request_count;
    uint64_t cumulative_total_request_time_ns;
    // HTTP: until the last byte was sent; gRPC: encoding.
    uint64_t cumulative_send_time_ns;
    // HTTP: from the first byte received to the last; gRPC: decoding.
    uint64_t cumulative_receive_time_ns;
    Stat()
        : completed_request_count(0),
          cumulative_total_request_time_ns(0),
          cumulative_send_time_ns(0),
          cumulative_receive_time_ns(0) {}
  };

  typedef std::map<std::string, std::unique_ptr<Result>> ResultMap;
  typedef std::function<void(InferContext*, const std::shared_ptr<Request>&)> OnCompleteFn;

  virtual ~InferContext() {}
  virtual const std::string& ModelName() const = 0;
  // -1 is the latest.
  virtual int64_t ModelVersion() const = 0;
  // 0 if the model does not batch.
  virtual uint64_t MaxBatchSize() const = 0;
  virtual CorrelationID CorrelationId() const = 0;
  virtual const std::vector<std::shared_ptr<Input>>& Inputs() const = 0;
  virtual const std::vector<std::shared_ptr<Output>>& Outputs() const = 0;
  virtual Error GetInput(const std::string& name, std::shared_ptr<Input>* input) const = 0;
  virtual Error GetOutput(const std::string& name, std::shared_ptr<Output>* output) const = 0;
  virtual Error SetRunOptions(const Options& options) = 0;
  // Bytes of one batch entry; -1 if type or shape is variable.
  virtual int64_t ByteSize(const DimsList& shape, DataType dtype) const = 0;
  virtual Error GetStat(Stat* stat) const = 0;

  virtual Error Run(ResultMap* results) = 0;

  // v1.3 and later: the callback is called by a thread of the library, one at a time for each
  // context.
  virtual Error AsyncRun(OnCompleteFn callback) = 0;
  // Before v1.3: the request is asked for with GetAsyncRunResults.
  virtual Error AsyncRun(std::shared_ptr<Request>* async_request) = 0;

  // v1.11: for a request that a callback got.
  virtual Error GetAsyncRunResults(const std::shared_ptr<Request>& async_request, ResultMap* results) = 0;
  // v1.0 to v1.10.
  virtual Error GetAsyncRunResults(ResultMap* results, bool* is_ready, const std::shared_ptr<Request>& async_request,
                                   bool wait) = 0;
  virtual Error GetReadyAsyncRequest(std::shared_ptr<Request>* async_request, bool* is_ready, bool wait) = 0;
  // v0.12: a request that has not completed is the error UNAVAILABLE.
  virtual Error GetAsyncRunResults(ResultMap* results, const std::shared_ptr<Request>& async_request, bool wait) = 0;
  virtual Error GetReadyAsyncRequest(std::shared_ptr<Request>* async_request, bool wait) = 0;
};

template <>
inline Error InferContext::Result::GetRawAtCursor(size_t batch_idx, std::string* out) {
  const uint8_t* buf;
  Error err = GetRawAtCursor(batch_idx, &buf, sizeof(uint32_t));
  if (!err.IsOk()) return err;
  uint32_t size;
  std::copy(buf, buf + sizeof(size), reinterpret_cast<uint8_t*>(&size));
  err = GetRawAtCursor(batch_idx, &buf, size);
  if (!err.IsOk()) return err;
  out->assign(reinterpret_cast<const char*>(buf), size);
  return Error();
}

template <typename T>
Error InferContext::Result::GetRawAtCursor(size_t batch_idx, T* out) {
  const uint8_t* buf;
  const Error err = GetRawAtCursor(batch_idx, &buf, sizeof(T));
  if (err.IsOk()) std::copy(buf, buf + sizeof(T), reinterpret_cast<uint8_t*>(out));
  return err;
}

}  // namespace client
}  // namespace inferenceserver
}  // namespace nvidia

#include "infer_impl.h"

#endif
