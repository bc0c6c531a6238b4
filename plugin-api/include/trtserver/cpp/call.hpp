// The input side: tensors, calls, and batches with their gathering and scattering.
#ifndef TRTSERVER_CPP_CALL_HPP
#define TRTSERVER_CPP_CALL_HPP

#include "answer.hpp"

namespace trtserver {

// Elements of STRING data, each a little-endian 32-bit byte count and that many bytes; views into `bytes`.
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
      throw Error::invalid("a STRING element reaches past the end of its data");
    }
    all.emplace_back(bytes.data() + at + 4, n);
    at += 4 + static_cast<std::size_t>(n);
  }
  return all;
}

// One input of one call, read-only. The host's: valid until execute returns.
class Tensor {
public:
  explicit Tensor(const trts_tensor *raw) noexcept : raw_(raw) {}

  std::string_view name() const noexcept { return detail::view(raw_->name); }
  Dtype dtype() const noexcept { return static_cast<Dtype>(raw_->dtype); }
  // With the batch dimension first when the model batches.
  Span<const std::int64_t> shape() const noexcept { return {raw_->shape, raw_->rank}; }
  std::uint64_t byte_size() const noexcept { return raw_->bytes; }
  // A sequence control or a state that the host added.
  bool control() const noexcept { return (raw_->flags & TRTS_TENSOR_CONTROL) != 0; }
  bool state() const noexcept { return (raw_->flags & TRTS_TENSOR_STATE) != 0; }
  // The pieces as the host holds them.
  Span<const trts_buf> parts() const noexcept { return {raw_->parts, raw_->n_parts}; }

  // The elements in place. Throws if T is another type than the tensor's, or if the bytes lie in several pieces or
  // unaligned (About::align rules that out); to_vector always works.
  template <class T> Span<const T> as() const {
    expect(dtype_of<T>);
    const Span<const char> all = bytes();
    if (reinterpret_cast<std::uintptr_t>(all.data()) % alignof(T) != 0 || all.size() % sizeof(T) != 0) {
      throw Error::internal("input '" + std::string(name()) + "' does not lie aligned as " + name_of(dtype_of<T>));
    }
    return {reinterpret_cast<const T *>(all.data()), all.size() / sizeof(T)};
  }

  // The elements in memory of their own.
  template <class T> std::vector<T> to_vector() const {
    expect(dtype_of<T>);
    const std::string all = to_bytes();
    std::vector<T> values(all.size() / sizeof(T));
    if (!values.empty()) {
      std::memcpy(values.data(), all.data(), values.size() * sizeof(T));
    }
    return values;
  }

  // The elements of a STRING tensor, each in memory of its own. In place: strings_in(tensor.bytes()).
  std::vector<std::string> to_strings() const {
    expect(Dtype::String);
    const std::string all = to_bytes();
    const auto views = strings_in({all.data(), all.size()});
    return {views.begin(), views.end()};
  }

  // All bytes in place. Throws if they lie in several pieces.
  Span<const char> bytes() const {
    if (raw_->n_parts > 1) {
      throw Error::unsupported("input '" + std::string(name()) + "' lies in " + std::to_string(raw_->n_parts) +
                               " pieces");
    }
    return raw_->n_parts == 0 ? Span<const char>() : piece(raw_->parts[0]);
  }

  // All bytes, gathered.
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
  void expect(Dtype wanted) const {
    if (dtype() != wanted) {
      throw Error::invalid("input '" + std::string(name()) + "' is " + name_of(dtype()) + ", not " + name_of(wanted));
    }
  }

  Span<const char> piece(const trts_buf &part) const {
    if (part.place.kind == TRTS_PLACE_GPU) {
      throw Error::unsupported("input '" + std::string(name()) + "' lies on a GPU");
    }
    return {static_cast<const char *>(part.ptr), static_cast<std::size_t>(part.bytes)};
  }

  const trts_tensor *raw_;
};

// One request. A few pointers: copy it freely. The host's: valid until execute returns, on its thread.
class Call {
public:
  Call(const trts_call *raw, detail::Marks *marks) noexcept : raw_(raw), marks_(marks) {}

  // The caller's name for the request.
  std::string_view id() const noexcept { return detail::view(raw_->id); }
  CallKey key() const noexcept { return reinterpret_cast<CallKey>(raw_->reply); }
  // Rows, 1 for a model without batch dimension.
  std::uint32_t batch_size() const noexcept { return raw_->batch; }

  std::size_t inputs() const noexcept { return raw_->n_inputs; }
  Tensor input(std::size_t i) const noexcept { return Tensor(&raw_->inputs[i]); }
  std::optional<Tensor> find(std::string_view name) const noexcept {
    for (std::uint32_t i = 0; i < raw_->n_inputs; i++) {
      if (detail::view(raw_->inputs[i].name) == name) {
        return Tensor(&raw_->inputs[i]);
      }
    }
    return std::nullopt;
  }
  // As find; throws when there is none.
  Tensor input(std::string_view name) const {
    if (const auto found = find(name)) {
      return *found;
    }
    throw Error::invalid("input '" + std::string(name) + "' is missing");
  }

  // Whether the caller asked for this output. Others may be made; they go nowhere.
  bool wants(std::string_view name) const noexcept {
    for (std::uint32_t i = 0; i < raw_->n_outputs; i++) {
      if (detail::view(raw_->outputs[i].name) == name) {
        return true;
      }
    }
    return false;
  }

  Params params() const noexcept { return {raw_->params, raw_->n_params}; }
  // Correlation id as a number (0 = none) or as a text (empty = none), and the edges of the sequence.
  std::uint64_t sequence() const noexcept { return raw_->sequence; }
  std::string_view sequence_text() const noexcept { return detail::view(raw_->sequence_text); }
  bool sequence_start() const noexcept { return (raw_->flags & TRTS_CALL_SEQUENCE_START) != 0; }
  bool sequence_end() const noexcept { return (raw_->flags & TRTS_CALL_SEQUENCE_END) != 0; }
  // The caller can take several responses.
  bool streaming() const noexcept { return (raw_->flags & TRTS_CALL_STREAMING) != 0; }
  // CLOCK_MONOTONIC nanoseconds; 0 = none.
  std::uint64_t deadline_ns() const noexcept { return raw_->deadline_ns; }
  // Nobody waits for the answer any more.
  bool cancelled() const noexcept { return detail::cancelled(raw_->cancelled); }
  const trts_call *raw() const noexcept { return raw_; }

  Response respond() const { return Response(raw_->reply, marks_); }
  // Ends the call with an error, or (end) without a further answer. Nothing happens when it has ended or was kept.
  void fail(const Error &error) const noexcept { finish(&error); }
  void end() const noexcept { finish(nullptr); }

  // Takes the answer side out of execute, to answer later from any thread. The inputs stay behind: copy what is needed.
  Reply keep() const {
    if (marks_->kept || marks_->ended) {
      throw Error::internal("this call was kept or answered before");
    }
    Reply reply(*raw_);
    marks_->kept = true;
    return reply;
  }

private:
  void finish(const Error *error) const noexcept {
    if (!marks_->kept && !marks_->ended) {
      detail::end(raw_->reply, *marks_, error);
    }
  }

  const trts_call *raw_;
  detail::Marks *marks_;
};

// An input over all calls of a batch, read-only: Batch::gather. The bytes are valid until execute returns.
struct Gathered {
  std::string name;
  Dtype dtype;
  // That of the calls, with the rows of all of them first when the model batches.
  std::vector<std::int64_t> shape;
  Span<const char> bytes;

  template <class T> Span<const T> as() const {
    if (dtype != dtype_of<T> || reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) != 0) {
      throw Error::invalid("input '" + name + "' of " + name_of(dtype) + " cannot be read as " + name_of(dtype_of<T>));
    }
    return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

// The unit of work. Answer each call by itself, or gather, compute once and scatter. What is neither answered nor kept
// when execute returns gets its rows of what was scattered, or an error if nothing was; when execute throws, that error.
class Batch {
public:
  explicit Batch(trts_batch *raw) : raw_(raw), marks_(raw->n) {}
  Batch(const Batch &) = delete;
  Batch &operator=(const Batch &) = delete;

  std::size_t size() const noexcept { return raw_->n; }
  // Sum of the calls' rows.
  std::uint32_t rows() const noexcept { return raw_->rows; }
  // Number of the batch, for traces.
  std::uint64_t id() const noexcept { return raw_->id; }
  Call operator[](std::size_t i) noexcept { return Call(raw_->calls[i], &marks_[i]); }

  // For statistics; times left out the host measures around execute.
  void mark_compute() noexcept { raw_->t_compute = detail::host->now_ns(); }
  void mark_output() noexcept { raw_->t_output = detail::host->now_ns(); }

  // The input in place `position` of the calls, over all of them: rows one after another. Copies only when there are
  // several calls that do not lie side by side. Throws when shapes differ beyond the batch dimension.
  Gathered gather(std::uint32_t position) const {
    trts_buf block{};
    if (detail::host->gather == nullptr) {
      throw Error::unsupported("this host is too old to gather inputs of a whole batch");
    }
    detail::check(detail::host->gather(raw_, position, detail::cpu, TRTS_GATHER_ROWS, nullptr, &block));
    const Tensor first(&raw_->calls[0]->inputs[position]);
    std::vector<std::int64_t> shape(first.shape().begin(), first.shape().end());
    if (raw_->n > 1 && !shape.empty()) {
      shape[0] = raw_->rows;
    }
    const Span<const char> bytes(static_cast<const char *>(block.ptr), static_cast<std::size_t>(block.bytes));
    return {std::string(first.name()), first.dtype(), std::move(shape), bytes};
  }

  // Memory of the host for an output of all calls; the shape begins with rows() when the model batches. 64-byte
  // aligned, valid until execute returns, empty if no call wants it. Each output once; not while a response is open.
  template <class T> Span<T> scatter(const std::string &name, const Shape &shape) {
    if (detail::host->scatter_alloc == nullptr) {
      throw Error::unsupported("this host is too old to scatter outputs of a whole batch");
    }
    trts_buf block{};
    detail::check(detail::host->scatter_alloc(raw_, detail::str(name), static_cast<std::uint32_t>(dtype_of<T>),
                                              shape.rank(), shape.data(), shape.bytes(name, sizeof(T)), detail::cpu,
                                              &block));
    scattered_ = true;
    return detail::elements<T>(name, block);
  }

  // The same, donated; see Response::adopt.
  template <class Owner> void scatter_adopt(const std::string &name, Dtype dtype, const Shape &shape, Owner owner) {
    if (detail::host->scatter_adopt == nullptr) {
      throw Error::unsupported("this host is too old to scatter outputs of a whole batch");
    }
    detail::donate(std::move(owner), [&](const trts_buf &block, trts_release_fn release, void *ctx) {
      return detail::host->scatter_adopt(raw_, detail::str(name), static_cast<std::uint32_t>(dtype), shape.rank(),
                                         shape.data(), &block, release, ctx);
    });
    scattered_ = true;
  }

  // Leaves nothing of the batch open, whatever execute did; takes `error`. For the entry alone.
  void finish(trts_error *error) noexcept {
    bool kept = false;
    for (const detail::Marks &marks : marks_) {
      kept = kept || marks.kept;
    }
    if (kept && !scattered_) {
      trts_error *const omitted = detail::raise(Code::Internal, 0, "the backend returned without answering");
      for (std::uint32_t i = 0; i < raw_->n; i++) {
        if (!marks_[i].kept && !marks_[i].ended) {
          detail::host->error_free(detail::host->reply_end(raw_->calls[i]->reply, error ? error : omitted));
        }
        detail::host->request_release(raw_->calls[i]->request, nullptr);
      }
      detail::host->error_free(omitted);
    } else {
      // Sending leaves kept calls alone, but not their requests.
      for (std::uint32_t i = 0; i < raw_->n; i++) {
        if (marks_[i].kept) {
          detail::host->request_release(raw_->calls[i]->request, nullptr);
        }
      }
      detail::host->error_free(detail::host->batch_send(raw_, error, nullptr));
    }
    detail::host->error_free(error);
  }

private:
  trts_batch *raw_;
  std::vector<detail::Marks> marks_;
  bool scattered_ = false;
};

} // namespace trtserver

#endif
