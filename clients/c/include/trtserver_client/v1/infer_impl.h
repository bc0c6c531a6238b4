// Implementation of InferContext on the C interface: values of inputs and their checks are in the
// library, cursors of results here. C++11. Included by infer.h.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_V1_INFER_IMPL_H
#define TRTSERVER_CLIENT_V1_INFER_IMPL_H

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include "connection.h"
#include "infer.h"

namespace nvidia {
namespace inferenceserver {
namespace client {
namespace detail {

inline DimsList ToDims(const trtc_v1_tensor& tensor) { return DimsList(tensor.dims, tensor.dims + tensor.dim_count); }

class InputImpl : public InferContext::Input {
 public:
  InputImpl(trtc_v1_context* context, size_t index, const trtc_v1_tensor& tensor)
      : context_(context),
        index_(index),
        name_(tensor.name),
        type_(static_cast<DataType>(tensor.data_type)),
        format_(static_cast<ModelInput::Format>(tensor.format)),
        is_shape_tensor_(tensor.is_shape_tensor),
        dims_(ToDims(tensor)) {}

  const std::string& Name() const override { return name_; }
  int64_t ByteSize() const override { return Sizes().first; }
  size_t TotalByteSize() const override { return static_cast<size_t>(Sizes().second); }
  DataType DType() const override { return type_; }
  bool IsShapeTensor() const override { return is_shape_tensor_; }
  ModelInput::Format Format() const override { return format_; }
  const DimsList& Dims() const override { return dims_; }
  Error Reset() override { return Take(trtc_v1_input_reset(context_, index_)); }
  const std::vector<int64_t>& Shape() const override { return shape_; }
  Error SetShape(const std::vector<int64_t>& dims) override {
    const Error err = Take(trtc_v1_input_set_shape(context_, index_, dims.data(), dims.size()));
    if (err.IsOk()) shape_ = dims;
    return err;
  }
  Error SetRaw(const uint8_t* input, size_t size) override {
    return Take(trtc_v1_input_add_data(context_, index_, input, size));
  }
  Error SetRaw(const std::vector<uint8_t>& input) override { return SetRaw(input.data(), input.size()); }
  Error SetFromString(const std::vector<std::string>& input) override {
    std::vector<const char*> strings;
    std::vector<size_t> sizes;
    for (const std::string& each : input) {
      strings.push_back(each.data());
      sizes.push_back(each.size());
    }
    return Take(trtc_v1_input_add_strings(context_, index_, strings.data(), sizes.data(), sizes.size()));
  }
  Error SetSharedMemory(const std::string& name, size_t offset, size_t size) override {
    return Take(trtc_v1_input_set_region(context_, index_, name.c_str(), offset, size));
  }

 private:
  std::pair<int64_t, uint64_t> Sizes() const {
    std::pair<int64_t, uint64_t> sizes(-1, 0);
    trtc_error_free(trtc_v1_input_sizes(context_, index_, &sizes.first, &sizes.second));
    return sizes;
  }

  // Released with the context; the library refuses it then.
  trtc_v1_context* const context_;
  const size_t index_;
  const std::string name_;
  const DataType type_;
  const ModelInput::Format format_;
  const bool is_shape_tensor_;
  const DimsList dims_;
  std::vector<int64_t> shape_;
};

class OutputImpl : public InferContext::Output {
 public:
  explicit OutputImpl(const trtc_v1_tensor& tensor)
      : name_(tensor.name),
        type_(static_cast<DataType>(tensor.data_type)),
        is_shape_tensor_(tensor.is_shape_tensor),
        dims_(ToDims(tensor)) {}
  const std::string& Name() const override { return name_; }
  DataType DType() const override { return type_; }
  bool IsShapeTensor() const override { return is_shape_tensor_; }
  const DimsList& Dims() const override { return dims_; }

 private:
  const std::string name_;
  const DataType type_;
  const bool is_shape_tensor_;
  const DimsList dims_;
};

class OptionsImpl : public InferContext::Options {
 public:
  OptionsImpl() : flags_(0), batch_size_(0), priority_(0), timeout_us_(0), correlation_id_(0) {}
  bool Flag(InferRequestHeader::Flag flag) const override { return (flags_ & static_cast<uint32_t>(flag)) != 0; }
  void SetFlag(InferRequestHeader::Flag flag, bool value) override {
    const uint32_t bit = static_cast<uint32_t>(flag);
    flags_ = value ? flags_ | bit : flags_ & ~bit;
  }
  uint32_t Flags() const override { return flags_; }
  void SetFlags(uint32_t flags) override { flags_ = flags; }
  size_t BatchSize() const override { return batch_size_; }
  void SetBatchSize(size_t batch_size) override { batch_size_ = batch_size; }
  uint32_t Priority() const override { return priority_; }
  void SetPriority(uint32_t priority) override { priority_ = priority; }
  uint64_t Timeout() const override { return timeout_us_; }
  void SetTimeout(uint64_t timeout_us) override { timeout_us_ = timeout_us; }
  CorrelationID CorrelationId() const override { return correlation_id_; }
  void SetCorrelationId(CorrelationID correlation_id) override { correlation_id_ = correlation_id; }
  Error AddRawResult(const std::shared_ptr<InferContext::Output>& output) override {
    return Add(output, 0, std::string(), 0, 0);
  }
  Error AddClassResult(const std::shared_ptr<InferContext::Output>& output, uint64_t k) override {
    return Add(output, k, std::string(), 0, 0);
  }
  Error AddSharedMemoryResult(const std::shared_ptr<InferContext::Output>& output, const std::string& name,
                              size_t offset, size_t byte_size) override {
    return Add(output, 0, name, offset, byte_size);
  }

  Error SetOn(trtc_v1_context* context) const {
    std::vector<trtc_v1_output> outputs;
    for (const Requested& each : outputs_) {
      const char* region = each.region.empty() ? nullptr : each.region.c_str();
      const trtc_v1_output output = {each.output->Name().c_str(), each.classes, region, each.offset, each.byte_size};
      outputs.push_back(output);
    }
    trtc_v1_options options;
    std::memset(&options, 0, sizeof(options));
    options.struct_size = sizeof(options);
    options.batch_size = batch_size_;
    options.flags = flags_;
    options.priority = priority_;
    options.timeout_us = timeout_us_;
    options.correlation_id = correlation_id_;
    options.outputs = outputs.data();
    options.output_count = outputs.size();
    return Take(trtc_v1_set_options(context, &options));
  }

 private:
  struct Requested {
    std::shared_ptr<InferContext::Output> output;
    uint64_t classes;
    std::string region;
    size_t offset;
    size_t byte_size;
  };
  Error Add(const std::shared_ptr<InferContext::Output>& output, uint64_t classes, const std::string& region,
            size_t offset, size_t byte_size) {
    if (!output) return Error(RequestStatusCode::INVALID_ARG, "no output was given");
    const Requested requested = {output, classes, region, offset, byte_size};
    outputs_.push_back(requested);
    return Error();
  }

  uint32_t flags_;
  size_t batch_size_;
  uint32_t priority_;
  uint64_t timeout_us_;
  CorrelationID correlation_id_;
  std::vector<Requested> outputs_;
};

// A result of the C interface, shared by the results of its outputs.
class ResultHandle {
 public:
  explicit ResultHandle(trtc_v1_result* result) : result_(result), info_(nullptr) {}
  ~ResultHandle() { trtc_v1_result_free(result_); }
  ResultHandle(const ResultHandle&) = delete;
  ResultHandle& operator=(const ResultHandle&) = delete;
  Error Read() { return Take(trtc_v1_result_get(result_, &info_)); }
  const trtc_v1_result_info& info() const { return *info_; }

 private:
  trtc_v1_result* const result_;
  const trtc_v1_result_info* info_;
};

class ResultImpl : public InferContext::Result {
 public:
  ResultImpl(const std::shared_ptr<ResultHandle>& handle, const trtc_v1_result_output& data,
             const std::shared_ptr<InferContext::Output>& output)
      : handle_(handle),
        data_(data),
        output_(output),
        model_name_(handle->info().model_name),
        batch_size_(static_cast<size_t>(handle->info().batch_size)),
        cursors_(batch_size_),
        copies_(batch_size_) {}

  const std::string& ModelName() const override { return model_name_; }
  int64_t ModelVersion() const override { return handle_->info().model_version; }
  const std::shared_ptr<InferContext::Output> GetOutput() const override { return output_; }
  Error GetRawShape(std::vector<int64_t>* shape) const override {
    shape->clear();
    if (data_.is_class) return Unsupported("raw shape not available for non-RAW");
    shape->assign(data_.dims, data_.dims + data_.dim_count);
    return Error();
  }
  Error GetRaw(size_t batch_idx, const std::vector<uint8_t>** buf) const override {
    const uint8_t* data;
    size_t size;
    const Error err = GetRaw(batch_idx, &data, &size);
    if (!err.IsOk()) return err;
    std::vector<uint8_t>& copy = copies_[batch_idx];
    if (copy.empty()) copy.assign(data, data + size);
    *buf = &copy;
    return Error();
  }
  Error GetRaw(size_t batch_idx, const uint8_t** buf, size_t* byte_size) const override {
    const Error err = CheckRaw(batch_idx);
    if (!err.IsOk()) return err;
    *buf = static_cast<const uint8_t*>(data_.entries[batch_idx].data);
    *byte_size = data_.entries[batch_idx].size;
    return Error();
  }
  Error GetRawAtCursor(size_t batch_idx, const uint8_t** buf, size_t size) override {
    const Error err = CheckRaw(batch_idx);
    if (!err.IsOk()) return err;
    const trtc_v1_entry& entry = data_.entries[batch_idx];
    size_t& cursor = cursors_[batch_idx];
    if (size > entry.size - cursor) return Beyond();
    *buf = static_cast<const uint8_t*>(entry.data) + cursor;
    cursor += size;
    return Error();
  }
  Error GetClassCount(size_t batch_idx, size_t* cnt) const override {
    if (!data_.is_class) return Unsupported("class result not available for non-CLASS");
    if (batch_idx >= data_.entry_count || batch_idx >= batch_size_) return Unexpected(batch_idx);
    *cnt = data_.entries[batch_idx].class_count;
    return Error();
  }
  Error GetClassAtCursor(size_t batch_idx, ClassResult* result) override {
    if (data_.in_region) return Unsupported("class result not available for shared memory");
    size_t count = 0;
    const Error err = GetClassCount(batch_idx, &count);
    if (!err.IsOk()) return err;
    size_t& cursor = cursors_[batch_idx];
    if (cursor >= count) return Beyond();
    const trtc_class& found = data_.entries[batch_idx].classes[cursor++];
    result->idx = static_cast<size_t>(found.index);
    result->value = found.value;
    result->label = found.label;
    return Error();
  }
  Error ResetCursors() override {
    std::fill(cursors_.begin(), cursors_.end(), 0);
    return Error();
  }
  Error ResetCursor(size_t batch_idx) override {
    if (batch_idx >= batch_size_) return Unexpected(batch_idx);
    cursors_[batch_idx] = 0;
    return Error();
  }

 private:
  Error CheckRaw(size_t batch_idx) const {
    if (data_.in_region) return Unsupported("raw result not available for shared memory");
    if (data_.is_class) return Unsupported("raw result not available for non-RAW");
    if (batch_idx >= data_.entry_count || batch_idx >= batch_size_) return Unexpected(batch_idx);
    return Error();
  }
  Error Unsupported(const char* what) const {
    return Error(RequestStatusCode::UNSUPPORTED, std::string(what) + " output '" + output_->Name() + "'");
  }
  Error Unexpected(size_t batch_idx) const {
    return Error(RequestStatusCode::INVALID_ARG, "unexpected batch entry " + std::to_string(batch_idx) +
                                                     " requested for output '" + output_->Name() +
                                                     "', batch size is " + std::to_string(batch_size_));
  }
  Error Beyond() const {
    return Error(RequestStatusCode::UNSUPPORTED,
                 "attempt to read beyond end of result for output '" + output_->Name() + "'");
  }

  const std::shared_ptr<ResultHandle> handle_;
  const trtc_v1_result_output& data_;
  const std::shared_ptr<InferContext::Output> output_;
  const std::string model_name_;
  const size_t batch_size_;
  // Bytes or classes of each batch entry that were read.
  std::vector<size_t> cursors_;
  mutable std::vector<std::vector<uint8_t>> copies_;
};

class RequestImpl : public InferContext::Request {
 public:
  explicit RequestImpl(InferContext::OnCompleteFn callback) : callback(std::move(callback)), id(0), ready(false) {}
  uint64_t Id() const override { return id; }

  InferContext::OnCompleteFn callback;
  uint64_t id;
  // Set under the context's lock.
  bool ready;
  Error error;
  std::shared_ptr<ResultHandle> result;
};

class ContextImpl : public InferContext {
 public:
  // `copies_inputs`: asynchronous runs copy the values of inputs, as the gRPC contexts of the
  // original did; programs rely on it.
  explicit ContextImpl(bool copies_inputs)
      : handle_(nullptr), model_(nullptr), copies_inputs_(copies_inputs), closing_(false) {}

  ~ContextImpl() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closing_ = true;
    }
    // Waits for callbacks.
    trtc_v1_context_free(handle_);
  }

  Error Open(const Settings& settings, const std::string& model, int64_t version, CorrelationID correlation_id,
             bool streaming) {
    Error err = Take(
        trtc_v1_context_new(settings.get(), model.c_str(), version, correlation_id, streaming, 0, &handle_));
    if (err.IsOk()) err = Take(trtc_v1_context_model(handle_, &model_));
    if (!err.IsOk()) return err;
    name_ = model_->name;
    for (size_t i = 0; i < model_->input_count; ++i) {
      inputs_.push_back(std::make_shared<InputImpl>(handle_, i, model_->inputs[i]));
    }
    for (size_t i = 0; i < model_->output_count; ++i) {
      outputs_.push_back(std::make_shared<OutputImpl>(model_->outputs[i]));
    }
    return err;
  }

  const std::string& ModelName() const override { return name_; }
  int64_t ModelVersion() const override { return model_->version; }
  uint64_t MaxBatchSize() const override { return model_->max_batch_size; }
  CorrelationID CorrelationId() const override { return correlation_id_ == 0 ? model_->correlation_id : correlation_id_; }
  const std::vector<std::shared_ptr<Input>>& Inputs() const override { return inputs_; }
  const std::vector<std::shared_ptr<Output>>& Outputs() const override { return outputs_; }
  Error GetInput(const std::string& name, std::shared_ptr<Input>* input) const override {
    return Find(inputs_, name, "input", input);
  }
  Error GetOutput(const std::string& name, std::shared_ptr<Output>* output) const override {
    return Find(outputs_, name, "output", output);
  }
  Error SetRunOptions(const Options& options) override {
    const OptionsImpl& set = static_cast<const OptionsImpl&>(options);
    const Error err = set.SetOn(handle_);
    if (err.IsOk() && set.CorrelationId() != 0) correlation_id_ = set.CorrelationId();
    return err;
  }
  int64_t ByteSize(const DimsList& shape, DataType dtype) const override { return GetByteSize(dtype, shape); }
  Error GetStat(Stat* stat) const override {
    trtc_v1_statistics statistics;
    const Error err = Take(trtc_v1_context_statistics(handle_, &statistics));
    if (!err.IsOk()) return err;
    stat->completed_request_count = static_cast<size_t>(statistics.completed_request_count);
    stat->cumulative_total_request_time_ns = statistics.total_request_time_ns;
    stat->cumulative_send_time_ns = statistics.send_time_ns;
    stat->cumulative_receive_time_ns = statistics.receive_time_ns;
    return err;
  }

  Error Run(ResultMap* results) override {
    trtc_v1_result* result = nullptr;
    const Error err = Take(trtc_v1_run(handle_, 0, 0, &result));
    if (!err.IsOk()) return err;
    const std::shared_ptr<ResultHandle> handle = std::make_shared<ResultHandle>(result);
    const Error read = handle->Read();
    return read.IsOk() ? Fill(handle, results) : read;
  }

  Error AsyncRun(OnCompleteFn callback) override {
    std::shared_ptr<Request> request;
    return Start(std::move(callback), &request);
  }
  Error AsyncRun(std::shared_ptr<Request>* async_request) override { return Start(OnCompleteFn(), async_request); }

  Error GetAsyncRunResults(const std::shared_ptr<Request>& async_request, ResultMap* results) override {
    bool is_ready;
    return GetAsyncRunResults(results, &is_ready, async_request, true);
  }
  Error GetAsyncRunResults(ResultMap* results, const std::shared_ptr<Request>& async_request, bool wait) override {
    bool is_ready;
    const Error err = GetAsyncRunResults(results, &is_ready, async_request, wait);
    if (err.IsOk() && !is_ready) return Error(RequestStatusCode::UNAVAILABLE, "Request is not ready.");
    return err;
  }
  Error GetAsyncRunResults(ResultMap* results, bool* is_ready, const std::shared_ptr<Request>& async_request,
                           bool wait) override {
    *is_ready = false;
    std::unique_lock<std::mutex> lock(mutex_);
    if (ongoing_.empty()) return Error(RequestStatusCode::INVALID_ARG, "No asynchronous requests have been sent");
    const auto found = std::find(ongoing_.begin(), ongoing_.end(), async_request);
    if (found == ongoing_.end()) {
      return Error(RequestStatusCode::INVALID_ARG, "No matched asynchronous request found.");
    }
    const std::shared_ptr<RequestImpl> request = *found;
    if (wait) completed_.wait(lock, [&request] { return request->ready; });
    if (!request->ready) return Error();
    ongoing_.erase(std::find(ongoing_.begin(), ongoing_.end(), request));
    lock.unlock();
    *is_ready = true;
    return request->error.IsOk() ? Fill(request->result, results) : request->error;
  }

  Error GetReadyAsyncRequest(std::shared_ptr<Request>* async_request, bool wait) override {
    bool is_ready;
    const Error err = GetReadyAsyncRequest(async_request, &is_ready, wait);
    if (err.IsOk() && !is_ready) return Error(RequestStatusCode::UNAVAILABLE, "No completed request.");
    return err;
  }
  Error GetReadyAsyncRequest(std::shared_ptr<Request>* async_request, bool* is_ready, bool wait) override {
    *is_ready = false;
    std::unique_lock<std::mutex> lock(mutex_);
    if (ongoing_.empty()) return Error(RequestStatusCode::UNAVAILABLE, "No asynchronous requests have been sent");
    const auto look = [this, async_request, is_ready] {
      for (const auto& each : ongoing_) {
        if (!each->ready) continue;
        *async_request = each;
        *is_ready = true;
        return true;
      }
      return false;
    };
    if (wait) {
      completed_.wait(lock, look);
    } else {
      look();
    }
    return Error();
  }

 private:
  // What a callback of the C interface gets.
  struct Pending {
    ContextImpl* context;
    std::shared_ptr<RequestImpl> request;
  };

  template <typename T>
  Error Find(const std::vector<std::shared_ptr<T>>& all, const std::string& name, const char* what,
             std::shared_ptr<T>* found) const {
    for (const auto& each : all) {
      if (each->Name() == name) {
        *found = each;
        return Error();
      }
    }
    return Error(RequestStatusCode::INVALID_ARG,
                 std::string("unknown ") + what + " '" + name + "' for '" + name_ + "'");
  }

  Error Fill(const std::shared_ptr<ResultHandle>& handle, ResultMap* results) const {
    results->clear();
    const trtc_v1_result_info& info = handle->info();
    for (size_t i = 0; i < info.output_count; ++i) {
      std::shared_ptr<Output> output;
      const Error err = GetOutput(info.outputs[i].name, &output);
      if (!err.IsOk()) return err;
      (*results)[output->Name()].reset(new ResultImpl(handle, info.outputs[i], output));
    }
    return Done(info.server_id, info.request_id);
  }

  Error Start(OnCompleteFn callback, std::shared_ptr<Request>* async_request) {
    const std::shared_ptr<RequestImpl> request = std::make_shared<RequestImpl>(std::move(callback));
    std::unique_ptr<Pending> pending(new Pending());
    pending->context = this;
    pending->request = request;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ongoing_.push_back(request);
    }
    *async_request = request;
    uint64_t id = 0;
    trtc_error* error =
        trtc_v1_run_async(handle_, copies_inputs_ ? TRTC_COPY_INPUTS : 0, 0, &ContextImpl::Complete, pending.get(), &id);
    std::lock_guard<std::mutex> lock(mutex_);
    if (error == nullptr) {
      pending.release();
      request->id = id;
    } else {
      ongoing_.erase(std::find(ongoing_.begin(), ongoing_.end(), request));
      async_request->reset();
    }
    return Take(error);
  }

  static void Complete(void* user, uint64_t id, trtc_error* error, trtc_v1_result* result) noexcept {
    const std::unique_ptr<Pending> pending(static_cast<Pending*>(user));
    ContextImpl* const context = pending->context;
    const std::shared_ptr<RequestImpl>& request = pending->request;
    Error outcome = Take(error);
    if (result != nullptr) {
      request->result = std::make_shared<ResultHandle>(result);
      outcome = request->result->Read();
    }
    bool closing;
    {
      std::lock_guard<std::mutex> lock(context->mutex_);
      request->id = id;
      request->error = outcome;
      request->ready = true;
      closing = context->closing_;
      context->completed_.notify_all();
    }
    // After this call the context may not exist any more.
    if (request->callback && !closing) request->callback(context, request);
  }

  trtc_v1_context* handle_;
  const trtc_v1_model* model_;
  const bool copies_inputs_;
  std::string name_;
  CorrelationID correlation_id_ = 0;
  std::vector<std::shared_ptr<Input>> inputs_;
  std::vector<std::shared_ptr<Output>> outputs_;
  std::mutex mutex_;
  std::condition_variable completed_;
  // Requests whose results were not taken, in the order of their start.
  std::deque<std::shared_ptr<RequestImpl>> ongoing_;
  bool closing_;
};

// What the Create functions of the inference contexts do.
inline Error CreateInfer(std::unique_ptr<InferContext>* ctx, const Settings& settings, CorrelationID correlation_id,
                         const std::string& model, int64_t version, bool copies_inputs, bool streaming) {
  Error err = settings.Check();
  if (!err.IsOk()) return err;
  std::unique_ptr<ContextImpl> made(new ContextImpl(copies_inputs));
  err = made->Open(settings, model, version, correlation_id, streaming);
  if (err.IsOk()) ctx->reset(made.release());
  return err;
}

}  // namespace detail

inline Error InferContext::Options::Create(std::unique_ptr<InferContext::Options>* options) {
  options->reset(new detail::OptionsImpl());
  return Error();
}

}  // namespace client
}  // namespace inferenceserver
}  // namespace nvidia

#endif
