// SPDX-License-Identifier: Apache-2.0
// Basics of the C++ side: the host table, errors as exceptions, element types, spans, parameters.
//
// Read ../backend.hpp first.
#ifndef TRTSERVER_CPP_BASE_HPP
#define TRTSERVER_CPP_BASE_HPP

#include "../trtserver.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__GNUC__)
// Two backends in one process must not share the variables of this header.
#define TRTSERVER_HIDDEN __attribute__((visibility("hidden")))
#else
#define TRTSERVER_HIDDEN
#endif

namespace trtserver {

namespace detail {

// The host table; set by the entry symbol before any other entry runs, valid for the life of the
// process.
TRTSERVER_HIDDEN inline const trts_host_table *host = nullptr;
// The host's metrics; null when it has none.
TRTSERVER_HIDDEN inline const trts_metrics_extension *metrics = nullptr;
// The host's memory and devices; null when it has none.
TRTSERVER_HIDDEN inline const trts_memory_extension *memory = nullptr;
TRTSERVER_HIDDEN inline const trts_device_extension *device = nullptr;

inline trts_str str(const std::string &text) noexcept {
  trts_str borrowed;
  borrowed.p = text.c_str();
  borrowed.n = text.size();
  return borrowed;
}

inline std::string_view view(trts_str text) noexcept {
  return text.n == 0 ? std::string_view() : std::string_view(text.p, static_cast<std::size_t>(text.n));
}

} // namespace detail

// ---- errors ----

// Class of an error. Clients see it as an HTTP or gRPC status.
enum class Code : std::uint32_t {
  Unknown = TRTS_CODE_UNKNOWN,
  Internal = TRTS_CODE_INTERNAL,
  NotFound = TRTS_CODE_NOT_FOUND,
  Invalid = TRTS_CODE_INVALID,
  Unavailable = TRTS_CODE_UNAVAILABLE,
  Unsupported = TRTS_CODE_UNSUPPORTED,
  Exists = TRTS_CODE_EXISTS,
  Cancelled = TRTS_CODE_CANCELLED,
  Deadline = TRTS_CODE_DEADLINE,
  Exhausted = TRTS_CODE_EXHAUSTED,
  DeviceLost = TRTS_CODE_DEVICE_LOST,
  Permission = TRTS_CODE_PERMISSION,
  Aborted = TRTS_CODE_ABORTED
};

// A failure: a code, a text for the client (what()), and TRTS_ERROR_… flags for the host. Throw it
// anywhere: entries convert it to an error of the host. Other exceptions become Code::Internal with
// their what().
class Error : public std::runtime_error {
public:
  explicit Error(Code code, const std::string &text, std::uint32_t flags = 0)
      : std::runtime_error(text), code_(code), flags_(flags) {}

  static Error invalid(const std::string &text) { return Error(Code::Invalid, text); }
  static Error internal(const std::string &text) { return Error(Code::Internal, text); }
  static Error not_found(const std::string &text) { return Error(Code::NotFound, text); }
  static Error unavailable(const std::string &text) { return Error(Code::Unavailable, text); }
  static Error unsupported(const std::string &text) { return Error(Code::Unsupported, text); }
  static Error cancelled(const std::string &text) { return Error(Code::Cancelled, text); }

  Code code() const noexcept { return code_; }
  std::uint32_t flags() const noexcept { return flags_; }

private:
  Code code_;
  std::uint32_t flags_;
};

namespace detail {

// Creates an error of the host; its receiver frees it.
inline trts_error *raise(Code code, std::uint32_t flags, const char *text) noexcept {
  return host->error_new(static_cast<std::uint32_t>(code), flags, trts_text(text));
}

// Throws an error of the host and frees it; null is success.
inline void check(trts_error *error) {
  if (error == nullptr) {
    return;
  }
  struct Owned {
    trts_error *error;
    ~Owned() { host->error_free(error); }
  } owned{error};
  const std::uint32_t number = host->error_code(error);
  const Code code = number <= TRTS_CODE_ABORTED ? static_cast<Code>(number) : Code::Unknown;
  throw Error(code, std::string(view(host->error_text(error))));
}

// Runs `work` and returns what it throws as an error of the host; null = success.
template <class Work> trts_error *guarded(Work &&work) noexcept {
  try {
    std::forward<Work>(work)();
    return nullptr;
  } catch (const Error &error) {
    return raise(error.code(), error.flags(), error.what());
  } catch (const std::bad_alloc &) {
    return raise(Code::Exhausted, 0, "the backend is out of memory");
  } catch (const std::exception &error) {
    return raise(Code::Internal, 0, error.what());
  } catch (...) {
    return raise(Code::Internal, 0, "the backend threw something that is not a std::exception");
  }
}

} // namespace detail

// ---- spans ----

// A pointer and a count, as std::span of C++20. Borrowed: valid as long as its source.
template <class T> class Span {
public:
  constexpr Span() noexcept = default;
  constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
  // A span of T is a span of const T.
  template <class U, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
  constexpr Span(const Span<U> &other) noexcept : data_(other.data()), size_(other.size()) {}

  constexpr T *data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr T *begin() const noexcept { return data_; }
  constexpr T *end() const noexcept { return data_ + size_; }
  constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }

private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};

// The shape of an output, borrowed for one call: from a list of numbers, a vector, or a tensor's
// shape.
class Shape {
public:
  Shape(std::initializer_list<std::int64_t> dims) noexcept { dims_ = {dims.begin(), dims.size()}; }
  Shape(const std::vector<std::int64_t> &dims) noexcept : dims_(dims.data(), dims.size()) {}
  Shape(Span<const std::int64_t> dims) noexcept : dims_(dims) {}

  const std::int64_t *data() const noexcept { return dims_.data(); }
  std::uint32_t rank() const noexcept { return static_cast<std::uint32_t>(dims_.size()); }

  // Product of the dimensions times `size`. Throws when a dimension is negative or the product
  // exceeds memory.
  std::uint64_t bytes(const std::string &name, std::size_t size) const {
    std::uint64_t total = size;
    for (const std::int64_t dim : dims_) {
      const auto n = static_cast<std::uint64_t>(dim);
      if (dim < 0 || (n != 0 && total > std::numeric_limits<std::uint64_t>::max() / n)) {
        throw Error::internal("output '" + name + "' has an impossible shape");
      }
      total *= n;
    }
    return total;
  }

private:
  Span<const std::int64_t> dims_;
};

// ---- element types ----

// Numbers of DataType in a model configuration.
enum class Dtype : std::uint32_t {
  Invalid = TRTS_DTYPE_INVALID,
  Bool = TRTS_DTYPE_BOOL,
  Uint8 = TRTS_DTYPE_UINT8,
  Uint16 = TRTS_DTYPE_UINT16,
  Uint32 = TRTS_DTYPE_UINT32,
  Uint64 = TRTS_DTYPE_UINT64,
  Int8 = TRTS_DTYPE_INT8,
  Int16 = TRTS_DTYPE_INT16,
  Int32 = TRTS_DTYPE_INT32,
  Int64 = TRTS_DTYPE_INT64,
  Fp16 = TRTS_DTYPE_FP16,
  Fp32 = TRTS_DTYPE_FP32,
  Fp64 = TRTS_DTYPE_FP64,
  String = TRTS_DTYPE_STRING,
  Bf16 = TRTS_DTYPE_BF16
};

TRTSERVER_HIDDEN inline const char *name_of(Dtype dtype) noexcept {
  static constexpr const char *names[] = {"INVALID", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16",
                                          "INT32",   "INT64", "FP16", "FP32",   "FP64",   "STRING", "BF16"};
  const auto number = static_cast<std::uint32_t>(dtype);
  return number < sizeof names / sizeof *names ? names[number] : "UNKNOWN";
}

// Element types that C++ lacks: a byte that is 0 or not, and the bits of two 16-bit floats.
struct Bool {
  std::uint8_t value;
};
struct Fp16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

// The Dtype of a C++ type; a type without one does not compile.
template <class T> struct ElementOf;
template <> struct ElementOf<Bool> { static constexpr Dtype dtype = Dtype::Bool; };
template <> struct ElementOf<std::uint8_t> { static constexpr Dtype dtype = Dtype::Uint8; };
template <> struct ElementOf<std::uint16_t> { static constexpr Dtype dtype = Dtype::Uint16; };
template <> struct ElementOf<std::uint32_t> { static constexpr Dtype dtype = Dtype::Uint32; };
template <> struct ElementOf<std::uint64_t> { static constexpr Dtype dtype = Dtype::Uint64; };
template <> struct ElementOf<std::int8_t> { static constexpr Dtype dtype = Dtype::Int8; };
template <> struct ElementOf<std::int16_t> { static constexpr Dtype dtype = Dtype::Int16; };
template <> struct ElementOf<std::int32_t> { static constexpr Dtype dtype = Dtype::Int32; };
template <> struct ElementOf<std::int64_t> { static constexpr Dtype dtype = Dtype::Int64; };
template <> struct ElementOf<Fp16> { static constexpr Dtype dtype = Dtype::Fp16; };
template <> struct ElementOf<float> { static constexpr Dtype dtype = Dtype::Fp32; };
template <> struct ElementOf<double> { static constexpr Dtype dtype = Dtype::Fp64; };
template <> struct ElementOf<Bf16> { static constexpr Dtype dtype = Dtype::Bf16; };
template <class T> constexpr Dtype dtype_of = ElementOf<std::remove_cv_t<T>>::dtype;

// ---- parameters ----

// A named value of a request, a model or the settings. Borrowed: valid as long as its owner.
class Value {
public:
  explicit Value(const trts_param *raw) noexcept : raw_(raw) {}

  std::string_view key() const noexcept { return detail::view(raw_->key); }

  // The text, if it is one.
  std::optional<std::string_view> text() const noexcept {
    return raw_->kind == TRTS_PARAM_STRING ? std::optional(detail::view(raw_->text)) : std::nullopt;
  }

  // An integer, or a text that spells one (model parameters and settings are always texts).
  std::optional<std::int64_t> integer() const {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (raw_->kind == TRTS_PARAM_INT || (raw_->kind == TRTS_PARAM_UINT && raw_->bits <= most)) {
      return static_cast<std::int64_t>(raw_->bits);
    }
    return parsed<std::int64_t>([](const char *p, char **end) { return std::strtoll(p, end, 10); });
  }

  // A number, or a text that spells one.
  std::optional<double> number() const {
    switch (raw_->kind) {
    case TRTS_PARAM_INT:
      return static_cast<double>(static_cast<std::int64_t>(raw_->bits));
    case TRTS_PARAM_UINT:
      return static_cast<double>(raw_->bits);
    case TRTS_PARAM_DOUBLE: {
      double value;
      std::memcpy(&value, &raw_->bits, sizeof value);
      return value;
    }
    default:
      return parsed<double>([](const char *p, char **end) { return std::strtod(p, end); });
    }
  }

  // A boolean, an integer (0 is false), or true/yes/on, false/no/off as text.
  std::optional<bool> boolean() const {
    if (raw_->kind == TRTS_PARAM_BOOL || raw_->kind == TRTS_PARAM_INT || raw_->kind == TRTS_PARAM_UINT) {
      return raw_->bits != 0;
    }
    const std::string_view word = text().value_or("");
    if (word == "true" || word == "1" || word == "yes" || word == "on") {
      return true;
    }
    if (word == "false" || word == "0" || word == "no" || word == "off") {
      return false;
    }
    return std::nullopt;
  }

private:
  template <class T, class Parse> std::optional<T> parsed(Parse parse) const {
    const std::string text(this->text().value_or(""));
    char *end = nullptr;
    errno = 0;
    const T value = parse(text.c_str(), &end);
    const bool whole = !text.empty() && end == text.c_str() + text.size() && errno == 0;
    return whole ? std::optional<T>(value) : std::nullopt;
  }

  const trts_param *raw_;
};

// A list of parameters. Borrowed, as Value.
class Params {
public:
  Params(const trts_param *data, std::size_t size) noexcept : all_(data, size) {}

  std::size_t size() const noexcept { return all_.size(); }
  Value operator[](std::size_t i) const noexcept { return Value(&all_[i]); }

  std::optional<Value> get(std::string_view key) const noexcept {
    for (const trts_param &param : all_) {
      if (detail::view(param.key) == key) {
        return Value(&param);
      }
    }
    return std::nullopt;
  }

  std::optional<std::string_view> text(std::string_view key) const noexcept {
    const auto found = get(key);
    return found ? found->text() : std::nullopt;
  }

  // The integer of that name, or `fallback` when there is none. Throws when the value is not an
  // integer.
  std::int64_t integer(std::string_view key, std::int64_t fallback) const {
    const auto found = get(key);
    if (!found) {
      return fallback;
    }
    if (const auto value = found->integer()) {
      return *value;
    }
    throw Error::invalid("parameter '" + std::string(key) + "' is '" + std::string(found->text().value_or("")) +
                         "', which is not an integer");
  }

private:
  Span<const trts_param> all_;
};

} // namespace trtserver

#endif
