// SPDX-License-Identifier: Apache-2.0
// The input side: tensors, requests, and batches with gather and scatter.
#ifndef TRTSERVER_CPP_REQUEST_HPP
#define TRTSERVER_CPP_REQUEST_HPP

#include "response.hpp"

namespace trtserver {

// Elements of STRING data, each a little-endian 32-bit byte count and that many bytes; views into
// `bytes`.
inline std::vector<std::string_view> strings_in(Span<const char> bytes) {
  std::vector<std::string_view> all;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint32_t n = 0;
    if (bytes.size() - at >= 4) {
      for (unsigned i = 0; i < 4; i++) {
        n |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
      }
    }
    if (bytes.size() - at < 4 || bytes.size() - at - 4 < n) {
      throw Error::invalid("a STRING element extends past the end of its data");
    }
    all.emplace_back(bytes.data() + at + 4, n);
    at += 4 + static_cast<std::size_t>(n);
  }
  return all;
}

// One input of a request, read-only. Owned by the host: valid until execute returns.
class Tensor {
public:
  explicit Tensor(const trts_tensor *raw) noexcept : raw_(raw) {}

  std::string_view name() const noexcept { return detail::view(raw_->name); }
  Dtype dtype() const noexcept { return static_cast<Dtype>(raw_->dtype); }
  // With the batch dimension first when the model batches.
  Span<const std::int64_t> shape() const noexcept { return {raw_->shape, raw_->rank}; }
  std::uint64_t byte_size() const noexcept { return raw_->bytes; }
  // A sequence control, or state of a sequence, added by the host.
  bool control() const noexcept { return (raw_->flags & TRTS_TENSOR_CONTROL) != 0; }
  bool state() const noexcept { return (raw_->flags & TRTS_TENSOR_STATE) != 0; }
  // Shapes may differ within the batch: Batch::gather returns the elements of all requests, flat.
  bool ragged() const noexcept { return (raw_->flags & TRTS_TENSOR_RAGGED) != 0; }
  // A batch input added by the host, which describes the requests of the batch.
  bool batch_input() const noexcept { return (raw_->flags & TRTS_TENSOR_BATCH) != 0; }
  // The parts as the host stores them.
  Span<const trts_buf> parts() const noexcept { return {raw_->parts, raw_->n_parts}; }

  // The elements in place. Throws if T is not the tensor's type, or if the bytes are in several
  // parts or unaligned (set BackendInfo::align to prevent that); to_vector always works.
  template <class T> Span<const T> as() const {
    expect(dtype_of<T>);
    const Span<const char> all = bytes();
    if (reinterpret_cast<std::uintptr_t>(all.data()) % alignof(T) != 0 || all.size() % sizeof(T) != 0) {
      throw Error::internal("input '" + std::string(name()) + "' is not aligned as " + name_of(dtype_of<T>));
    }
    return {reinterpret_cast<const T *>(all.data()), all.size() / sizeof(T)};
  }

  // A copy of the elements.
  template <class T> std::vector<T> to_vector() const {
    expect(dtype_of<T>);
    const std::string all = to_bytes();
    std::vector<T> values(all.size() / sizeof(T));
    if (!values.empty()) {
      std::memcpy(values.data(), all.data(), values.size() * sizeof(T));
    }
    return values;
  }

  // A copy of the elements of a STRING tensor. In place: strings_in(tensor.bytes()).
  std::vector<std::string> to_strings() const {
    expect(Dtype::String);
    const std::string all = to_bytes();
    const auto views = strings_in({all.data(), all.size()});
    return {views.begin(), views.end()};
  }

  // All bytes in place. Throws if they are in several parts.
  Span<const char> bytes() const {
    if (raw_->n_parts > 1) {
      throw Error::unsupported("input '" + std::string(name()) + "' is in " + std::to_string(raw_->n_parts) +
                               " parts");
    }
    return raw_->n_parts == 0 ? Span<const char>() : piece(raw_->parts[0]);
  }

  // A copy of all bytes.
  std::string to_bytes() const {
    std::string all;
    all.reserve(static_cast<std::size_t>(raw_->bytes));
    for (const trts_buf &part : parts()) {
      const Span<const char> bytes = piece(part);
      all.append(bytes.data(), bytes.size());
    }
    return all;
  }

private:
  void expect(Dtype expected) const {
    if (dtype() != expected) {
      throw Error::invalid("input '" + std::string(name()) + "' is " + name_of(dtype()) + ", not " + name_of(expected));
    }
  }

  Span<const char> piece(const trts_buf &part) const {
    if (part.memory.memory_type == TRTS_MEMORY_GPU) {
      throw Error::unsupported("input '" + std::string(name()) + "' is in GPU memory");
    }
    return {static_cast<const char *>(part.ptr), static_cast<std::size_t>(part.bytes)};
  }

  const trts_tensor *raw_;
};

// One request. Two pointers: copy it freely. Owned by the host: valid until execute returns, on its
// thread.
class Request {
public:
  Request(const trts_request *raw, detail::RequestState *state) noexcept : raw_(raw), state_(state) {}

  // The id that the client gave the request.
  std::string_view id() const noexcept { return detail::view(raw_->id); }
  RequestKey key() const noexcept { return reinterpret_cast<RequestKey>(raw_->responder); }
  // Rows, 1 for a model without batch dimension.
  std::uint32_t batch_size() const noexcept { return raw_->batch_size; }

  std::size_t inputs() const noexcept { return raw_->n_inputs; }
  Tensor input(std::size_t i) const noexcept { return Tensor(&raw_->inputs[i]); }
  std::optional<Tensor> input(std::string_view name) const noexcept {
    for (std::uint32_t i = 0; i < raw_->n_inputs; i++) {
      if (detail::view(raw_->inputs[i].name) == name) {
        return Tensor(&raw_->inputs[i]);
      }
    }
    return std::nullopt;
  }
  // As input; throws when there is none.
  Tensor required_input(std::string_view name) const {
    if (const auto found = input(name)) {
      return *found;
    }
    throw Error::invalid("input '" + std::string(name) + "' is missing");
  }

  // Whether this output is to be produced. Others are accepted and discarded.
  bool output_requested(std::string_view name) const noexcept {
    for (std::uint32_t i = 0; i < raw_->n_requested_outputs; i++) {
      if (detail::view(raw_->requested_outputs[i].name) == name) {
        return true;
      }
    }
    return false;
  }

  Params params() const noexcept { return {raw_->params, raw_->n_params}; }
  // A number (0 = none) or a string (empty = none).
  std::uint64_t correlation_id() const noexcept { return raw_->correlation_id; }
  std::string_view correlation_id_string() const noexcept { return detail::view(raw_->correlation_id_string); }
  bool sequence_start() const noexcept { return (raw_->flags & TRTS_REQUEST_SEQUENCE_START) != 0; }
  bool sequence_end() const noexcept { return (raw_->flags & TRTS_REQUEST_SEQUENCE_END) != 0; }
  // The client accepts several responses.
  bool streaming() const noexcept { return (raw_->flags & TRTS_REQUEST_STREAMING) != 0; }
  // CLOCK_MONOTONIC nanoseconds; 0 = none.
  std::uint64_t deadline_ns() const noexcept { return raw_->deadline_ns; }
  // The client no longer waits for a response, or the deadline has passed.
  bool cancelled() const noexcept { return detail::cancelled(raw_->cancelled); }
  // What the client has not read of the stream that the request arrived on.
  trts_backlog backlog() const { return detail::backlog(raw_->responder); }
  const trts_request *raw() const noexcept { return raw_; }

  // Creates a response: send or destroy it before creating the next.
  Response new_response() const { return Response(raw_->responder, state_); }
  // Finishes the request with an error, or (finish) without a further response. Does nothing when
  // the request is finished or detached.
  void fail(const Error &error) const noexcept { finish_with(&error); }
  void finish() const noexcept { finish_with(nullptr); }

  // Detaches the responder from execute, to respond later from any thread. The inputs are released
  // when execute returns: copy what is needed.
  Responder detach() const {
    if (state_->detached || state_->finished) {
      throw Error::internal("this request is already detached or finished");
    }
    Responder responder(*raw_);
    state_->detached = true;
    return responder;
  }

private:
  void finish_with(const Error *error) const noexcept {
    if (!state_->detached && !state_->finished) {
      detail::finish(raw_->responder, *state_, error);
    }
  }

  const trts_request *raw_;
  detail::RequestState *state_;
};

// An input over all requests of a batch, read-only: Batch::gather. The bytes are valid until
// execute returns.
struct Gathered {
  std::string name;
  Dtype dtype;
  // As in the requests, with the rows of all of them first when the model batches; of a ragged
  // input the number of elements.
  std::vector<std::int64_t> shape;
  Span<const char> bytes;

  template <class T> Span<const T> as() const {
    if (dtype != dtype_of<T> || reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) != 0) {
      throw Error::invalid("input '" + name + "' of " + name_of(dtype) + " cannot be read as " + name_of(dtype_of<T>));
    }
    return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

// The unit of execution. Respond to each request by itself, or gather, compute once and scatter. A
// request that is neither finished nor detached when execute returns gets its rows of the scattered
// outputs, or an error if there are none; when execute throws, that error.
class Batch {
public:
  explicit Batch(trts_batch *raw) : raw_(raw), state_(raw->n_requests) {}
  Batch(const Batch &) = delete;
  Batch &operator=(const Batch &) = delete;

  std::size_t size() const noexcept { return raw_->n_requests; }
  // Sum of the requests' batch sizes.
  std::uint32_t rows() const noexcept { return raw_->rows; }
  // Number of the batch, for traces.
  std::uint64_t id() const noexcept { return raw_->id; }
  Request operator[](std::size_t i) noexcept { return Request(raw_->requests[i], &state_[i]); }

  // For statistics; the host measures times that are left out around execute.
  void mark_compute_start() noexcept { raw_->compute_start_ns = detail::host->now_ns(); }
  void mark_compute_end() noexcept { raw_->compute_end_ns = detail::host->now_ns(); }

  // The input at `position` of all requests: rows one after another. Copies only when the inputs of
  // several requests are not adjacent in memory. Throws when shapes differ beyond the batch
  // dimension, unless the input is ragged or a batch input.
  Gathered gather(std::uint32_t position) const {
    const trts_buf block = gather_block(position, cpu_memory());
    const Tensor first(&raw_->requests[0]->inputs[position]);
    std::vector<std::int64_t> shape(first.shape().begin(), first.shape().end());
    if (first.ragged()) {
      shape.assign(1, 0);
    }
    for (std::uint32_t i = 0; i < raw_->n_requests && (first.ragged() || first.batch_input()); ++i) {
      const Tensor own(&raw_->requests[i]->inputs[position]);
      if (first.ragged()) {
        std::int64_t elements = 1;
        for (const std::int64_t dim : own.shape()) {
          elements *= dim;
        }
        shape[0] += elements;
      } else if (i > 0) {
        shape[0] += own.shape()[0];
      }
    }
    if (raw_->n_requests > 1 && !shape.empty() && !first.ragged() && !first.batch_input()) {
      shape[0] = raw_->rows;
    }
    const Span<const char> bytes(static_cast<const char *>(block.ptr), static_cast<std::size_t>(block.bytes));
    return {std::string(first.name()), first.dtype(), std::move(shape), bytes};
  }

  // The same in other memory, such as that of the instance's device. Ready for work submitted to
  // the instance's compute stream, and to `stream`; valid until execute returns and, with
  // finish_after, until its event is reached.
  trts_buf gather_block(std::uint32_t position, trts_memory memory, void *stream = nullptr) const {
    trts_buf block{};
    detail::check(detail::host->gather(raw_, position, memory, TRTS_GATHER_ROWS, stream, &block));
    return block;
  }

  // Memory of the host for an output of all requests; the shape begins with rows() when the model
  // batches. 64-byte aligned, valid until execute returns, empty if no request asked for it. Once
  // per output; not while a response exists.
  template <class T> Span<T> scatter(const std::string &name, const Shape &shape) {
    const std::uint64_t bytes = shape.bytes(name, sizeof(T));
    return detail::elements<T>(name, scatter_block(name, dtype_of<T>, shape, bytes, cpu_memory()));
  }

  // The same in other memory, such as that of the instance's device; the host may choose CPU memory
  // all the same. Ready for work submitted to the instance's compute stream; written until the
  // event of finish_after or, without one, by what was submitted to that stream during execute.
  trts_buf scatter_block(const std::string &name, Dtype dtype, const Shape &shape, std::uint64_t bytes,
                         trts_memory memory) {
    trts_buf block{};
    detail::check(detail::host->scatter_alloc(raw_, detail::str(name), static_cast<std::uint32_t>(dtype), shape.rank(),
                                              shape.data(), bytes, memory, &block));
    scattered_ = true;
    return block;
  }

  // Ends the batch with an event: outputs in GPU memory are read, and inputs reused, once it is
  // reached. Needed only with streams of the backend's own: without it, the host waits for what was
  // submitted to the instance's compute stream.
  void finish_after(Event event) noexcept { after_ = std::move(event); }

  // The same in memory of the backend; see Response::adopt.
  template <class Owner> void scatter_adopt(const std::string &name, Dtype dtype, const Shape &shape, Owner owner) {
    detail::adopt(std::move(owner), [&](const trts_buf &block, trts_release_fn release, void *ctx) {
      return detail::host->scatter_adopt(raw_, detail::str(name), static_cast<std::uint32_t>(dtype), shape.rank(),
                                         shape.data(), &block, release, ctx);
    });
    scattered_ = true;
  }

  // Finishes and releases what execute left open; takes `error`. For the entry only.
  void finish(trts_error *error) noexcept {
    bool detached = false;
    for (const detail::RequestState &state : state_) {
      detached = detached || state.detached;
    }
    trts_event *const after = after_.release();
    if (detached && !scattered_ && after == nullptr) {
      trts_error *const omitted = detail::raise(Code::Internal, 0, "the backend returned without finishing the request");
      for (std::uint32_t i = 0; i < raw_->n_requests; i++) {
        if (!state_[i].detached && !state_[i].finished) {
          detail::host->error_free(detail::host->responder_finish(raw_->requests[i]->responder, error ? error : omitted));
        }
        detail::host->request_release(raw_->requests[i]->handle, nullptr);
      }
      detail::host->error_free(omitted);
    } else {
      // batch_finish skips detached requests; release them first.
      for (std::uint32_t i = 0; i < raw_->n_requests; i++) {
        if (state_[i].detached) {
          detail::host->request_release(raw_->requests[i]->handle, nullptr);
        }
      }
      detail::host->error_free(detail::host->batch_finish(raw_, error, after));
    }
    detail::host->error_free(error);
  }

private:
  trts_batch *raw_;
  std::vector<detail::RequestState> state_;
  bool scattered_ = false;
  Event after_{nullptr};
};

} // namespace trtserver

#endif
