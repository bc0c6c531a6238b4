// SPDX-License-Identifier: Apache-2.0
// The response side of a request: responses, and responders detached from execute.
#ifndef TRTSERVER_CPP_RESPONSE_HPP
#define TRTSERVER_CPP_RESPONSE_HPP

#include "device.hpp"

#include <memory>

namespace trtserver {

class Request;
class Batch;

// Identifies a request until it is finished: the argument of an instance's `cancel`.
using RequestKey = std::uintptr_t;

namespace detail {

// State of a request as the backend has left it so far.
struct RequestState {
  bool finished = false;
  bool detached = false;
};

inline bool cancelled(const std::uint32_t *flag) noexcept {
  return flag != nullptr && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

inline void finish(trts_responder *responder, RequestState &state, const Error *error) noexcept {
  state.finished = true;
  trts_error *raised = error == nullptr ? nullptr : raise(error->code(), error->flags(), error->what());
  host->error_free(host->responder_finish(responder, raised));
  host->error_free(raised);
}

inline trts_backlog backlog(trts_responder *responder) {
  trts_backlog backlog{};
  check(host->responder_backlog(responder, &backlog));
  return backlog;
}

template <class Owner> void release(void *owner) { delete static_cast<Owner *>(owner); }

// Passes the memory of `owner` to `adopt(buffer, release, ctx)`, which takes ownership, also on
// failure.
template <class Owner, class Adopt> void adopt(Owner owner, Adopt &&adopt) {
  auto owned = std::make_unique<Owner>(std::move(owner));
  trts_buf part{};
  part.ptr = const_cast<void *>(static_cast<const void *>(owned->data()));
  part.bytes = owned->size() * sizeof(*owned->data());
  part.memory = cpu_memory();
  void *const ctx = owned.release();
  check(adopt(part, release<Owner>, ctx));
}

template <class T> Span<T> elements(const std::string &name, const trts_buf &block) {
  if (reinterpret_cast<std::uintptr_t>(block.ptr) % alignof(T) != 0) {
    throw Error::internal("the host's block for output '" + name + "' is not aligned");
  }
  return {static_cast<T *>(block.ptr), static_cast<std::size_t>(block.bytes / sizeof(T))};
}

} // namespace detail

// One response under construction, owned by the backend until sent; destroyed unsent, it is
// discarded. Send or destroy one before creating the next of the same request. One thread at a
// time.
//
// An output that was not requested is accepted and discarded: its span is empty.
class Response {
public:
  Response(trts_responder *responder, detail::RequestState *state) : state_(state) {
    if (state->detached || state->finished) {
      throw Error::internal(state->detached ? "this request was detached: respond with its Responder"
                                        : "this request is already finished");
    }
    detail::check(detail::host->response_new(responder, &raw_));
  }
  Response(Response &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)), state_(other.state_) {}
  Response &operator=(Response &&) = delete;
  ~Response() {
    if (raw_ != nullptr) {
      detail::host->response_free(raw_);
    }
  }

  // Memory of the host for an output: what is written there is sent as it is. 64-byte aligned,
  // uninitialized, valid until the response is sent or destroyed. The shape begins with the
  // request's batch size when the model batches.
  template <class T> Span<T> output(const std::string &name, const Shape &shape) {
    return detail::elements<T>(name, block(name, dtype_of<T>, shape, shape.bytes(name, sizeof(T))));
  }

  // The same in bytes, for any type.
  Span<char> output_bytes(const std::string &name, Dtype dtype, const Shape &shape, std::uint64_t bytes) {
    return detail::elements<char>(name, block(name, dtype, shape, bytes));
  }

  // As output_bytes, in other memory, such as that of the instance's device; the host may choose
  // CPU memory all the same. Ready for work submitted to the instance's compute stream; written
  // until the event of send_after or, without one, by what was submitted to that stream before the
  // response is sent.
  trts_buf output_block(const std::string &name, Dtype dtype, const Shape &shape, std::uint64_t bytes, trts_memory memory) {
    trts_buf block{};
    detail::check(detail::host->output_alloc(raw_, detail::str(name), static_cast<std::uint32_t>(dtype), shape.rank(),
                                             shape.data(), bytes, memory, &block));
    return block;
  }

  // Writes a STRING output; `values` is any list of things that a std::string_view can be made of.
  template <class List> void put_strings(const std::string &name, const Shape &shape, const List &values) {
    std::string all;
    for (const auto &value : values) {
      const std::string_view text(value);
      if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
        throw Error::invalid("output '" + name + "': an element is too long");
      }
      for (unsigned shift = 0; shift < 32; shift += 8) {
        all.push_back(static_cast<char>((text.size() >> shift) & 0xff));
      }
      all.append(text);
    }
    adopt(name, Dtype::String, shape, std::move(all));
  }

  // Adds an output in memory of the backend, without a copy: anything with data() and size(), such
  // as a vector or a string. The host takes ownership and destroys it exactly once on any thread,
  // also when this throws or the output was not requested.
  template <class Owner> void adopt(const std::string &name, Dtype dtype, const Shape &shape, Owner owner) {
    detail::adopt(std::move(owner), [&](const trts_buf &part, trts_release_fn release, void *ctx) {
      return detail::host->output_adopt(raw_, detail::str(name), static_cast<std::uint32_t>(dtype), shape.rank(),
                                        shape.data(), &part, 1, release, ctx);
    });
  }

  // Adds a parameter to the response; copied.
  void param(const std::string &key, const std::string &value) {
    trts_param param{};
    param.key = detail::str(key);
    param.kind = TRTS_PARAM_STRING;
    param.text = detail::str(value);
    detail::check(detail::host->response_param(raw_, &param));
  }
  void param(const std::string &key, std::int64_t value) {
    trts_param param{};
    param.key = detail::str(key);
    param.kind = TRTS_PARAM_INT;
    param.bits = static_cast<std::uint64_t>(value);
    detail::check(detail::host->response_param(raw_, &param));
  }

  // Sends the final response of the request. The response is consumed, also on failure.
  void send() { send_with(TRTS_SEND_FINAL); }
  // The same; outputs in GPU memory are read once the event is reached. The response leaves then.
  void send_after(Event event) { send_with(TRTS_SEND_FINAL, event.release()); }
  // Sends a response that is not the final one; the model configuration must say that the model is
  // decoupled. Waits for a client that reads slowly; throws an Error of code Cancelled when the
  // client disconnects.
  void send_more() { send_with(0); }
  // The same without waiting. False: the client has not read enough; the response was not sent and
  // may be sent later.
  bool try_send_more() {
    trts_error *const error = detail::host->response_send(raw_, TRTS_SEND_NO_WAIT, nullptr, nullptr);
    if (error != nullptr && detail::host->error_code(error) == TRTS_CODE_EXHAUSTED) {
      detail::host->error_free(error);
      return false;
    }
    raw_ = nullptr;
    detail::check(error);
    return true;
  }

private:
  trts_buf block(const std::string &name, Dtype dtype, const Shape &shape, std::uint64_t bytes) {
    return output_block(name, dtype, shape, bytes, cpu_memory());
  }

  void send_with(std::uint32_t flags, trts_event *after = nullptr) {
    trts_response *const raw = std::exchange(raw_, nullptr);
    detail::check(detail::host->response_send(raw, flags, nullptr, after));
    state_->finished = flags == TRTS_SEND_FINAL;
  }

  trts_response *raw_ = nullptr;
  detail::RequestState *state_;
};

// The responder of a detached request. Move it to any thread; one thread at a time. Destroyed
// before the request is finished, it fails the request with an error that says so. All responders
// must be destroyed before the instance: the host waits for them.
class Responder {
public:
  explicit Responder(const trts_request &request)
      : state_(new detail::RequestState), raw_(request.responder), cancelled_(request.cancelled), id_(detail::view(request.id)),
        batch_size_(request.batch_size) {
    for (std::uint32_t i = 0; i < request.n_requested_outputs; i++) {
      requested_.emplace_back(detail::view(request.requested_outputs[i].name));
    }
    // Last: nothing throws after it.
    detail::host->responder_detach(raw_);
  }
  Responder(Responder &&other) noexcept = default;
  Responder &operator=(Responder &&other) noexcept {
    if (this != &other) {
      release();
      state_ = std::move(other.state_);
      raw_ = other.raw_;
      cancelled_ = other.cancelled_;
      id_ = std::move(other.id_);
      requested_ = std::move(other.requested_);
      batch_size_ = other.batch_size_;
    }
    return *this;
  }
  ~Responder() { release(); }

  const std::string &id() const noexcept { return id_; }
  std::uint32_t batch_size() const noexcept { return batch_size_; }
  RequestKey key() const noexcept { return reinterpret_cast<RequestKey>(raw_); }
  // The client no longer waits for a response, or the deadline has passed.
  bool cancelled() const noexcept { return detail::cancelled(cancelled_); }
  bool output_requested(std::string_view name) const noexcept {
    for (const std::string &output : requested_) {
      if (output == name) {
        return true;
      }
    }
    return false;
  }

  // Creates a response, which must be sent or destroyed before this responder is.
  Response new_response() const { return Response(raw_, state_.get()); }
  // What the client has not read of the stream that the request arrived on.
  trts_backlog backlog() const { return detail::backlog(raw_); }
  // Finishes the request with an error, or (finish) without a further response. The second call
  // does nothing.
  void fail(const Error &error) const noexcept { finish_with(&error); }
  void finish() const noexcept { finish_with(nullptr); }

private:
  void finish_with(const Error *error) const noexcept {
    if (!state_->finished) {
      detail::finish(raw_, *state_, error);
    }
  }

  void release() noexcept {
    if (state_ == nullptr) {
      return;
    }
    if (!state_->finished) {
      trts_error *const raised = detail::raise(Code::Internal, 0, "the backend dropped a detached request without finishing it");
      detail::host->error_free(detail::host->responder_finish(raw_, raised));
      detail::host->error_free(raised);
    }
    detail::host->responder_release(raw_);
    state_.reset();
  }

  // On the heap, because responses point at it while the responder moves. Null: moved from.
  std::unique_ptr<detail::RequestState> state_;
  trts_responder *raw_;
  const std::uint32_t *cancelled_;
  std::string id_;
  std::vector<std::string> requested_;
  std::uint32_t batch_size_;
};

} // namespace trtserver

#endif
