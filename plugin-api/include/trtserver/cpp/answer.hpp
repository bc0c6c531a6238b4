// The answer side of a call: responses, and replies that outlive execute.
#ifndef TRTSERVER_CPP_ANSWER_HPP
#define TRTSERVER_CPP_ANSWER_HPP

#include "base.hpp"

#include <memory>

namespace trtserver {

class Call;
class Batch;

// Names a call while it is being answered: what an instance's `cancel` gets.
using CallKey = std::uintptr_t;

namespace detail {

// What became of a call so far.
struct Marks {
  bool ended = false;
  bool kept = false;
};

inline bool cancelled(const std::uint32_t *word) noexcept {
  return word != nullptr && __atomic_load_n(word, __ATOMIC_RELAXED) != 0;
}

inline void end(trts_reply *reply, Marks &marks, const Error *error) noexcept {
  marks.ended = true;
  trts_error *raised = error == nullptr ? nullptr : raise(error->code(), error->flags(), error->what());
  host->error_free(host->reply_end(reply, raised));
  host->error_free(raised);
}

constexpr trts_place cpu = {TRTS_PLACE_CPU, 0};

template <class Owner> void release(void *owner) { delete static_cast<Owner *>(owner); }

// Donates what `owner` holds through `give(buffer, release, ctx)`, which takes it whatever comes back.
template <class Owner, class Give> void donate(Owner owner, Give &&give) {
  auto kept = std::make_unique<Owner>(std::move(owner));
  trts_buf part{};
  part.ptr = const_cast<void *>(static_cast<const void *>(kept->data()));
  part.bytes = kept->size() * sizeof(*kept->data());
  part.place = cpu;
  void *const ctx = kept.release();
  check(give(part, release<Owner>, ctx));
}

template <class T> Span<T> elements(const std::string &name, const trts_buf &block) {
  if (reinterpret_cast<std::uintptr_t>(block.ptr) % alignof(T) != 0) {
    throw Error::internal("the host's block for output '" + name + "' is not aligned");
  }
  return {static_cast<T *>(block.ptr), static_cast<std::size_t>(block.bytes / sizeof(T))};
}

} // namespace detail

// One answer under construction, the backend's until sent; destroyed unsent, it is as if it had never begun. Finish one
// before beginning the next of the same call. One thread at a time.
//
// An output that the caller did not ask for is accepted and goes nowhere: its span is empty.
class Response {
public:
  Response(trts_reply *reply, detail::Marks *marks) : marks_(marks) {
    if (marks->kept || marks->ended) {
      throw Error::internal(marks->kept ? "this call was kept: its Reply answers it"
                                        : "this call has already been answered in full");
    }
    detail::check(detail::host->response_new(reply, &raw_));
  }
  Response(Response &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)), marks_(other.marks_) {}
  Response &operator=(Response &&) = delete;
  ~Response() {
    if (raw_ != nullptr) {
      detail::host->response_drop(raw_);
    }
  }

  // Memory of the host for an output: what is written there goes on the wire as it is. 64-byte aligned, contents
  // arbitrary, valid until the response is sent or destroyed. The shape begins with the call's rows when the model batches.
  template <class T> Span<T> output(const std::string &name, const Shape &shape) {
    return detail::elements<T>(name, block(name, dtype_of<T>, shape, shape.bytes(name, sizeof(T))));
  }

  // The same in bytes, for any type.
  Span<char> output_bytes(const std::string &name, Dtype dtype, const Shape &shape, std::uint64_t bytes) {
    return detail::elements<char>(name, block(name, dtype, shape, bytes));
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

  // Donates memory without a copy: anything with data() and size(), such as a vector or a string. The host owns it
  // from here on, and destroys it exactly once on any thread, also when this throws or nobody asked for the output.
  template <class Owner> void adopt(const std::string &name, Dtype dtype, const Shape &shape, Owner owner) {
    detail::donate(std::move(owner), [&](const trts_buf &part, trts_release_fn release, void *ctx) {
      return detail::host->output_adopt(raw_, detail::str(name), static_cast<std::uint32_t>(dtype), shape.rank(),
                                        shape.data(), &part, 1, release, ctx);
    });
  }

  // Adds a parameter to the answer; copied.
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

  // Sends the last answer of the call. The response is gone, whatever happens.
  void send() { finish(TRTS_SEND_LAST); }
  // Sends an answer of several; the model's configuration must say that it is decoupled.
  void send_more() { finish(0); }

private:
  trts_buf block(const std::string &name, Dtype dtype, const Shape &shape, std::uint64_t bytes) {
    trts_buf block{};
    detail::check(detail::host->output_alloc(raw_, detail::str(name), static_cast<std::uint32_t>(dtype), shape.rank(),
                                             shape.data(), bytes, detail::cpu, &block));
    return block;
  }

  void finish(std::uint32_t flags) {
    trts_response *const raw = std::exchange(raw_, nullptr);
    detail::check(detail::host->response_send(raw, flags, nullptr, nullptr));
    marks_->ended = flags == TRTS_SEND_LAST;
  }

  trts_response *raw_ = nullptr;
  detail::Marks *marks_;
};

// The answer side of a kept call. Move it to any thread; one thread at a time. Destroyed without an end, it ends its
// call with an error that says so. All replies must be gone before the instance is destroyed: the host waits for them.
class Reply {
public:
  explicit Reply(const trts_call &call)
      : marks_(new detail::Marks), raw_(call.reply), cancelled_(call.cancelled), id_(detail::view(call.id)),
        batch_size_(call.batch) {
    for (std::uint32_t i = 0; i < call.n_outputs; i++) {
      wanted_.emplace_back(detail::view(call.outputs[i].name));
    }
    // Last: nothing throws after it.
    detail::host->reply_retain(raw_);
  }
  Reply(Reply &&other) noexcept = default;
  Reply &operator=(Reply &&other) noexcept {
    if (this != &other) {
      let_go();
      marks_ = std::move(other.marks_);
      raw_ = other.raw_;
      cancelled_ = other.cancelled_;
      id_ = std::move(other.id_);
      wanted_ = std::move(other.wanted_);
      batch_size_ = other.batch_size_;
    }
    return *this;
  }
  ~Reply() { let_go(); }

  const std::string &id() const noexcept { return id_; }
  std::uint32_t batch_size() const noexcept { return batch_size_; }
  CallKey key() const noexcept { return reinterpret_cast<CallKey>(raw_); }
  // Nobody waits for the answer any more.
  bool cancelled() const noexcept { return detail::cancelled(cancelled_); }
  bool wants(std::string_view name) const noexcept {
    for (const std::string &wanted : wanted_) {
      if (wanted == name) {
        return true;
      }
    }
    return false;
  }

  // Begins an answer, which must be sent or destroyed before this reply is.
  Response respond() const { return Response(raw_, marks_.get()); }
  // Ends the call with an error, or (end) without a further answer. Doing so twice does nothing.
  void fail(const Error &error) const noexcept { finish(&error); }
  void end() const noexcept { finish(nullptr); }

private:
  void finish(const Error *error) const noexcept {
    if (!marks_->ended) {
      detail::end(raw_, *marks_, error);
    }
  }

  void let_go() noexcept {
    if (marks_ == nullptr) {
      return;
    }
    if (!marks_->ended) {
      trts_error *const raised = detail::raise(Code::Internal, 0, "the backend dropped a kept call unanswered");
      detail::host->error_free(detail::host->reply_end(raw_, raised));
      detail::host->error_free(raised);
    }
    detail::host->reply_release(raw_);
    marks_.reset();
  }

  // On the heap, because responses point at it while the reply moves. Null: moved away.
  std::unique_ptr<detail::Marks> marks_;
  trts_reply *raw_;
  const std::uint32_t *cancelled_;
  std::string id_;
  std::vector<std::string> wanted_;
  std::uint32_t batch_size_;
};

} // namespace trtserver

#endif
