// Protobuf messages without a protobuf library: containers, wire reader and writer, text form. The generated message classes
// (`*.pb.h`) have protobuf's C++ names and use this file. C++11.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_PROTOBUF_H
#define TRTSERVER_CLIENT_PROTOBUF_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace trtserver_client {
namespace pb {

// A repeated field of numbers, booleans or enums.
template <typename T>
class RepeatedField {
  // A structure, because std::vector<bool> has no pointers to its elements.
  struct Slot {
    T value;
  };

 public:
  typedef T value_type;
  typedef T* iterator;
  typedef const T* const_iterator;

  RepeatedField() {}
  template <typename It>
  RepeatedField(It from, It to) {
    for (; from != to; ++from) Add(*from);
  }

  int size() const { return static_cast<int>(slots_.size()); }
  bool empty() const { return slots_.empty(); }
  const T& Get(int at) const { return slots_[static_cast<size_t>(at)].value; }
  const T& operator[](int at) const { return Get(at); }
  T& operator[](int at) { return *Mutable(at); }
  T* Mutable(int at) { return &slots_[static_cast<size_t>(at)].value; }
  void Set(int at, const T& value) { *Mutable(at) = value; }
  void Add(const T& value) {
    Slot slot = {value};
    slots_.push_back(slot);
  }
  void RemoveLast() { slots_.pop_back(); }
  void Reserve(int size) { slots_.reserve(static_cast<size_t>(size)); }
  void Clear() { slots_.clear(); }
  void CopyFrom(const RepeatedField& other) { slots_ = other.slots_; }
  void Swap(RepeatedField* other) { slots_.swap(other->slots_); }
  const T* data() const { return empty() ? nullptr : &slots_[0].value; }
  T* mutable_data() { return empty() ? nullptr : &slots_[0].value; }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size(); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  iterator begin() { return mutable_data(); }
  iterator end() { return mutable_data() + size(); }

 private:
  std::vector<Slot> slots_;
};

// A repeated field of strings or messages; pointers to elements stay valid when elements are added.
template <typename T>
class RepeatedPtrField {
  typedef std::vector<std::unique_ptr<T>> Elements;

  template <typename Value>
  class Iterator {
   public:
    typedef std::random_access_iterator_tag iterator_category;
    typedef T value_type;
    typedef std::ptrdiff_t difference_type;
    typedef Value* pointer;
    typedef Value& reference;

    Iterator() : at_(nullptr) {}
    explicit Iterator(const std::unique_ptr<T>* at) : at_(at) {}
    Value& operator*() const { return **at_; }
    Value* operator->() const { return at_->get(); }
    Value& operator[](std::ptrdiff_t by) const { return *at_[by]; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this += -1; }
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    Iterator operator--(int) {
      Iterator old = *this;
      --*this;
      return old;
    }
    Iterator& operator+=(std::ptrdiff_t by) {
      at_ += by;
      return *this;
    }
    Iterator& operator-=(std::ptrdiff_t by) { return *this += -by; }
    Iterator operator+(std::ptrdiff_t by) const { return Iterator(at_ + by); }
    Iterator operator-(std::ptrdiff_t by) const { return Iterator(at_ - by); }
    std::ptrdiff_t operator-(const Iterator& other) const { return at_ - other.at_; }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }
    bool operator<(const Iterator& other) const { return at_ < other.at_; }

   private:
    const std::unique_ptr<T>* at_;
  };

 public:
  typedef T value_type;
  typedef Iterator<T> iterator;
  typedef Iterator<const T> const_iterator;

  RepeatedPtrField() {}
  RepeatedPtrField(const RepeatedPtrField& other) { CopyFrom(other); }
  RepeatedPtrField(RepeatedPtrField&& other) : elements_(std::move(other.elements_)) {}
  RepeatedPtrField& operator=(RepeatedPtrField other) {
    Swap(&other);
    return *this;
  }

  int size() const { return static_cast<int>(elements_.size()); }
  bool empty() const { return elements_.empty(); }
  const T& Get(int at) const { return *elements_[static_cast<size_t>(at)]; }
  const T& operator[](int at) const { return Get(at); }
  T& operator[](int at) { return *Mutable(at); }
  T* Mutable(int at) { return elements_[static_cast<size_t>(at)].get(); }
  T* Add() {
    elements_.push_back(std::unique_ptr<T>(new T()));
    return elements_.back().get();
  }
  void RemoveLast() { elements_.pop_back(); }
  void Reserve(int size) { elements_.reserve(static_cast<size_t>(size)); }
  void Clear() { elements_.clear(); }
  void CopyFrom(const RepeatedPtrField& other) {
    if (this == &other) return;
    Clear();
    for (const T& each : other) *Add() = each;
  }
  void Swap(RepeatedPtrField* other) { elements_.swap(other->elements_); }
  const_iterator begin() const { return const_iterator(elements_.data()); }
  const_iterator end() const { return begin() + size(); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  iterator begin() { return iterator(elements_.data()); }
  iterator end() { return begin() + size(); }

 private:
  Elements elements_;
};

// A map field, in the order of its keys.
template <typename K, typename V>
class Map : public std::map<K, V> {
 public:
  bool contains(const K& key) const { return this->count(key) != 0; }
};

// A field with a message; absent until it is set.
template <typename M>
class Submessage {
 public:
  Submessage() {}
  Submessage(const Submessage& other) : message_(other.message_ ? new M(*other.message_) : nullptr) {}
  Submessage(Submessage&& other) : message_(std::move(other.message_)) {}
  Submessage& operator=(Submessage other) {
    message_.swap(other.message_);
    return *this;
  }
  bool has() const { return message_ != nullptr; }
  const M& get() const { return message_ ? *message_ : M::default_instance(); }
  M* mut() {
    if (!message_) message_.reset(new M());
    return message_.get();
  }
  M* release() { return message_.release(); }
  void clear() { message_.reset(); }

 private:
  std::unique_ptr<M> message_;
};

// Names and numbers of an enum.
class EnumNames {
 public:
  explicit EnumNames(std::map<int, std::string> names) : names_(std::move(names)) {}
  // Empty for an unknown number.
  const std::string& Name(int number) const {
    static const std::string none;
    const auto found = names_.find(number);
    return found == names_.end() ? none : found->second;
  }
  bool Has(int number) const { return names_.count(number) != 0; }
  template <typename E>
  bool Parse(const std::string& name, E* value) const {
    for (const auto& each : names_) {
      if (each.second == name) {
        *value = static_cast<E>(each.first);
        return true;
      }
    }
    return false;
  }

 private:
  const std::map<int, std::string> names_;
};

// An enum as the generated code describes it to the visitors below.
template <typename E>
struct EnumField {
  E* value;
  const std::string& (*name)(E);
};
template <typename E>
struct RepeatedEnumField {
  RepeatedField<E>* values;
  const std::string& (*name)(E);
};

// Each message class has `template <typename V> void VisitFields(V& v)`, which calls v(number, name, field) for every field
// and v.OneOf(number, name, field, case) for those of a oneof. Reader, writer and text form are such visitors.

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// The unread part of a serialized message. Every function returns false at malformed input.
class Input {
 public:
  Input(const void* data, size_t size) : at_(static_cast<const uint8_t*>(data)), end_(at_ + size) {}
  bool empty() const { return at_ == end_; }
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) return false;
      const uint8_t byte = *at_++;
      if (shift < 64) *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool Bytes(Input* part) {
    uint64_t size;
    if (!Varint(&size) || size > static_cast<uint64_t>(end_ - at_)) return false;
    *part = Input(at_, static_cast<size_t>(size));
    at_ += size;
    return true;
  }
  template <typename T>
  bool Fixed(T* value) {
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) return false;
    std::memcpy(value, at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  bool Skip(int type) {
    uint64_t ignored;
    uint32_t ignored32;
    Input part(nullptr, 0);
    switch (type) {
      case kVarint:
        return Varint(&ignored);
      case kFixed64:
        return Fixed(&ignored);
      case kBytes:
        return Bytes(&part);
      case kFixed32:
        return Fixed(&ignored32);
      default:
        return false;
    }
  }
  std::string Text() const { return std::string(reinterpret_cast<const char*>(at_), static_cast<size_t>(end_ - at_)); }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

template <typename M>
bool ReadMessage(Input in, M* message, int depth);

// Reads one field: the visited field whose number was found in the input takes it.
class FieldReader {
 public:
  FieldReader(Input* in, int number, int type, int depth)
      : in_(in), number_(number), type_(type), depth_(depth), found_(false), ok_(true) {}
  bool found() const { return found_; }
  bool ok() const { return ok_; }

  template <typename F>
  void operator()(int number, const char*, F& field) {
    if (number == number_ && !found_) Take(field);
  }
  // For temporaries that describe enums.
  template <typename F>
  void operator()(int number, const char*, const F& field) {
    if (number == number_ && !found_) Take(field);
  }
  template <typename F>
  void OneOf(int number, const char*, F& field, int& which) {
    if (number != number_ || found_) return;
    if (which != number) field = F();
    which = number;
    Take(field);
  }

 private:
  bool Number(uint64_t* value) { return type_ == kVarint && in_->Varint(value); }

  template <typename T>
  void TakeNumber(T* value) {
    uint64_t number;
    found_ = true;
    ok_ = Number(&number);
    if (ok_) *value = static_cast<T>(number);
  }
  void Take(int32_t& value) { TakeNumber(&value); }
  void Take(int64_t& value) { TakeNumber(&value); }
  void Take(uint32_t& value) { TakeNumber(&value); }
  void Take(uint64_t& value) { TakeNumber(&value); }
  void Take(bool& value) {
    uint64_t number = 0;
    TakeNumber(&number);
    value = number != 0;
  }
  template <typename E>
  void Take(const EnumField<E>& field) {
    int32_t number = 0;
    TakeNumber(&number);
    *field.value = static_cast<E>(number);
  }
  void Take(float& value) {
    found_ = true;
    ok_ = type_ == kFixed32 && in_->Fixed(&value);
  }
  void Take(double& value) {
    found_ = true;
    ok_ = type_ == kFixed64 && in_->Fixed(&value);
  }
  void Take(std::string& value) {
    Input part(nullptr, 0);
    found_ = true;
    ok_ = type_ == kBytes && in_->Bytes(&part);
    if (ok_) value = part.Text();
  }
  template <typename M>
  void Take(Submessage<M>& field) {
    TakeMessage(field.mut());
  }
  template <typename M>
  void TakeMessage(M* message) {
    Input part(nullptr, 0);
    found_ = true;
    ok_ = type_ == kBytes && in_->Bytes(&part) && ReadMessage(part, message, depth_ - 1);
  }
  // Numbers are packed or single.
  template <typename T>
  void Take(RepeatedField<T>& field) {
    TakeMany([&field](T value) { field.Add(value); }, T());
  }
  template <typename E>
  void Take(const RepeatedEnumField<E>& field) {
    TakeMany([&field](int32_t value) { field.values->Add(static_cast<E>(value)); }, int32_t());
  }
  template <typename T, typename Add>
  void TakeMany(Add add, T) {
    T value = T();
    if (type_ != kBytes) {
      Take(value);
      if (ok_) add(value);
      return;
    }
    Input packed(nullptr, 0);
    found_ = true;
    ok_ = in_->Bytes(&packed);
    while (ok_ && !packed.empty()) {
      FieldReader each(&packed, number_, NumberType(value), depth_);
      each.Take(value);
      ok_ = each.ok();
      if (ok_) add(value);
    }
  }
  static int NumberType(float) { return kFixed32; }
  static int NumberType(double) { return kFixed64; }
  template <typename T>
  static int NumberType(T) {
    return kVarint;
  }
  void Take(RepeatedPtrField<std::string>& field) { Take(*field.Add()); }
  template <typename M>
  void Take(RepeatedPtrField<M>& field) {
    TakeMessage(field.Add());
  }
  template <typename K, typename V>
  void Take(Map<K, V>& field) {
    MapEntry<K, V> entry;
    TakeMessage(&entry);
    if (ok_) field[entry.key] = entry.value;
  }
  template <typename K, typename V>
  struct MapEntry {
    K key;
    V value;
    MapEntry() : key(), value() {}
    template <typename Visitor>
    void VisitFields(Visitor& v) {
      v(1, "key", key);
      v.Value(2, "value", value);
    }
  };

 public:
  // A number, string or message that is the value of a map.
  template <typename M>
  void Value(int number, const char*, M& value) {
    if (number == number_ && !found_) TakeValue(value);
  }

 private:
  void TakeValue(std::string& value) { Take(value); }
  void TakeValue(int32_t& value) { Take(value); }
  void TakeValue(int64_t& value) { Take(value); }
  void TakeValue(uint32_t& value) { Take(value); }
  void TakeValue(uint64_t& value) { Take(value); }
  template <typename M>
  void TakeValue(M& value) {
    TakeMessage(&value);
  }

  Input* in_;
  const int number_;
  const int type_;
  const int depth_;
  bool found_;
  bool ok_;
};

template <typename M>
bool ReadMessage(Input in, M* message, int depth) {
  if (depth == 0) return false;
  while (!in.empty()) {
    uint64_t tag;
    if (!in.Varint(&tag) || tag > UINT32_MAX || (tag >> 3) == 0) return false;
    FieldReader field(&in, static_cast<int>(tag >> 3), static_cast<int>(tag & 7), depth);
    message->VisitFields(field);
    if (!field.ok()) return false;
    if (!field.found() && !in.Skip(static_cast<int>(tag & 7))) return false;
  }
  return true;
}

// Appends the serialized message. Fields with default values are left out.
class Writer {
 public:
  explicit Writer(std::string* out) : out_(out) {}

  template <typename T>
  void operator()(int number, const char*, const T& field) {
    Put(number, field, false);
  }
  template <typename T>
  void OneOf(int number, const char*, const T& field, int which) {
    if (which == number) Put(number, field, true);
  }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_->push_back(static_cast<char>(value | 0x80));
    out_->push_back(static_cast<char>(value));
  }
  void Tag(int number, WireType type) { Varint(static_cast<uint64_t>(number) << 3 | type); }
  void Bytes(int number, const std::string& bytes) {
    Tag(number, kBytes);
    Varint(bytes.size());
    out_->append(bytes);
  }
  void Number(int number, uint64_t value, bool always) {
    if (value == 0 && !always) return;
    Tag(number, kVarint);
    Varint(value);
  }
  // A negative int32 has ten bytes, as in protobuf.
  static uint64_t Extend(int32_t value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); }
  template <typename T>
  void Fixed(int number, WireType type, T value, bool always) {
    if (value == 0 && !always) return;
    Tag(number, type);
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_->append(bytes, sizeof(T));
  }
  void Put(int number, int32_t value, bool always) { Number(number, Extend(value), always); }
  void Put(int number, int64_t value, bool always) { Number(number, static_cast<uint64_t>(value), always); }
  void Put(int number, uint32_t value, bool always) { Number(number, value, always); }
  void Put(int number, uint64_t value, bool always) { Number(number, value, always); }
  void Put(int number, bool value, bool always) { Number(number, value ? 1 : 0, always); }
  void Put(int number, float value, bool always) { Fixed(number, kFixed32, value, always); }
  void Put(int number, double value, bool always) { Fixed(number, kFixed64, value, always); }
  template <typename E>
  void Put(int number, const EnumField<E>& field, bool always) {
    Put(number, static_cast<int32_t>(*field.value), always);
  }
  void Put(int number, const std::string& value, bool always) {
    if (always || !value.empty()) Bytes(number, value);
  }
  template <typename M>
  void Put(int number, const Submessage<M>& field, bool) {
    if (field.has()) Bytes(number, field.get().SerializeAsString());
  }
  template <typename T>
  void Put(int number, const RepeatedField<T>& field, bool) {
    PutMany(number, field, [](T value) { return value; });
  }
  template <typename E>
  void Put(int number, const RepeatedEnumField<E>& field, bool) {
    PutMany(number, *field.values, [](E value) { return static_cast<int32_t>(value); });
  }
  template <typename T, typename Convert>
  void PutMany(int number, const RepeatedField<T>& field, Convert convert) {
    if (field.empty()) return;
    std::string packed;
    Writer inner(&packed);
    for (const T& each : field) inner.Packed(convert(each));
    Bytes(number, packed);
  }
  void Packed(int32_t value) { Varint(Extend(value)); }
  void Packed(int64_t value) { Varint(static_cast<uint64_t>(value)); }
  void Packed(uint32_t value) { Varint(value); }
  void Packed(uint64_t value) { Varint(value); }
  void Packed(bool value) { Varint(value ? 1 : 0); }
  void Packed(float value) { Raw(value); }
  void Packed(double value) { Raw(value); }
  template <typename T>
  void Raw(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_->append(bytes, sizeof(T));
  }
  void Put(int number, const RepeatedPtrField<std::string>& field, bool) {
    for (const std::string& each : field) Bytes(number, each);
  }
  template <typename M>
  void Put(int number, const RepeatedPtrField<M>& field, bool) {
    for (const M& each : field) Bytes(number, each.SerializeAsString());
  }
  template <typename K, typename V>
  void Put(int number, const Map<K, V>& field, bool) {
    for (const auto& each : field) {
      std::string entry;
      Writer inner(&entry);
      inner.Put(1, each.first, true);
      inner.PutValue(each.second);
      Bytes(number, entry);
    }
  }
  void PutValue(const std::string& value) { Bytes(2, value); }
  template <typename M>
  void PutValue(const M& value) {
    Bytes(2, value.SerializeAsString());
  }

  std::string* out_;
};

// Appends the text form, as DebugString of protobuf prints it.
class Printer {
 public:
  Printer(std::string* out, int indent, bool one_line) : out_(out), indent_(indent), one_line_(one_line) {}

  template <typename T>
  void operator()(int, const char* name, const T& field) {
    Put(name, field, false);
  }
  template <typename T>
  void OneOf(int number, const char* name, const T& field, int which) {
    if (which == number) Put(name, field, true);
  }

 private:
  void Line(const char* name, const std::string& value) {
    Start();
    out_->append(name).append(": ").append(value);
    End();
  }
  void Start() {
    if (!one_line_) out_->append(static_cast<size_t>(indent_), ' ');
  }
  void End() { out_->push_back(one_line_ ? ' ' : '\n'); }
  template <typename Body>
  void Block(const char* name, Body body) {
    Start();
    out_->append(name).append(" {");
    End();
    Printer inner(out_, indent_ + 2, one_line_);
    body(inner);
    Start();
    out_->push_back('}');
    End();
  }
  template <typename M>
  void Message(const char* name, const M& message) {
    Block(name, [&message](Printer& inner) { const_cast<M&>(message).VisitFields(inner); });
  }
  static std::string Quoted(const std::string& value) {
    std::string out("\"");
    for (const char c : value) {
      char escaped[8];
      const unsigned char byte = static_cast<unsigned char>(c);
      switch (c) {
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        case '"':
          out += "\\\"";
          break;
        case '\'':
          out += "\\'";
          break;
        case '\\':
          out += "\\\\";
          break;
        default:
          if (byte >= 0x20 && byte < 0x7f) {
            out.push_back(c);
          } else {
            std::snprintf(escaped, sizeof(escaped), "\\%03o", static_cast<unsigned>(byte));
            out += escaped;
          }
      }
    }
    out.push_back('"');
    return out;
  }
  // The fewest digits that give the value back.
  static std::string Shortest(double value, int digits, int most, bool single) {
    char text[40];
    for (; digits <= most; ++digits) {
      std::snprintf(text, sizeof(text), "%.*g", digits, value);
      if (single ? std::strtof(text, nullptr) == static_cast<float>(value) : std::strtod(text, nullptr) == value) break;
    }
    return text;
  }
  void Put(const char* name, bool value, bool always) {
    if (always || value) Line(name, value ? "true" : "false");
  }
  void Put(const char* name, int32_t value, bool always) { Number(name, value, always); }
  void Put(const char* name, int64_t value, bool always) { Number(name, value, always); }
  void Put(const char* name, uint32_t value, bool always) { Number(name, value, always); }
  void Put(const char* name, uint64_t value, bool always) { Number(name, value, always); }
  template <typename T>
  void Number(const char* name, T value, bool always) {
    if (always || value != 0) Line(name, std::to_string(value));
  }
  void Put(const char* name, float value, bool always) {
    if (always || !(value == 0)) Line(name, Shortest(static_cast<double>(value), 6, 9, true));
  }
  void Put(const char* name, double value, bool always) {
    if (always || !(value == 0)) Line(name, Shortest(value, 15, 17, false));
  }
  void Put(const char* name, const std::string& value, bool always) {
    if (always || !value.empty()) Line(name, Quoted(value));
  }
  template <typename E>
  void Put(const char* name, const EnumField<E>& field, bool always) {
    if (always || *field.value != 0) Line(name, Name(field.name, *field.value));
  }
  template <typename E>
  static std::string Name(const std::string& (*name)(E), E value) {
    const std::string& known = name(value);
    return known.empty() ? std::to_string(static_cast<int>(value)) : known;
  }
  template <typename M>
  void Put(const char* name, const Submessage<M>& field, bool) {
    if (field.has()) Message(name, field.get());
  }
  template <typename T>
  void Put(const char* name, const RepeatedField<T>& field, bool) {
    for (const T& each : field) Put(name, each, true);
  }
  template <typename E>
  void Put(const char* name, const RepeatedEnumField<E>& field, bool) {
    for (const E& each : *field.values) Line(name, Name(field.name, each));
  }
  void Put(const char* name, const RepeatedPtrField<std::string>& field, bool) {
    for (const std::string& each : field) Put(name, each, true);
  }
  template <typename M>
  void Put(const char* name, const RepeatedPtrField<M>& field, bool) {
    for (const M& each : field) Message(name, each);
  }
  template <typename K, typename V>
  void Put(const char* name, const Map<K, V>& field, bool) {
    for (const auto& each : field) {
      Block(name, [&each](Printer& inner) {
        inner.Put("key", each.first, true);
        inner.PutValue(each.second);
      });
    }
  }
  void PutValue(const std::string& value) { Put("value", value, true); }
  template <typename M>
  void PutValue(const M& value) {
    Message("value", value);
  }

  std::string* out_;
  const int indent_;
  const bool one_line_;
};

// What every message class has.
template <typename M>
class Message {
 public:
  static const M& default_instance() {
    static const M instance;
    return instance;
  }
  bool ParseFromArray(const void* data, int size) {
    Clear();
    return size >= 0 && ReadMessage(Input(data, static_cast<size_t>(size)), self(), kMaxDepth);
  }
  bool ParseFromString(const std::string& data) {
    Clear();
    return ReadMessage(Input(data.data(), data.size()), self(), kMaxDepth);
  }
  bool SerializeToString(std::string* out) const {
    *out = SerializeAsString();
    return true;
  }
  std::string SerializeAsString() const {
    std::string out;
    Writer writer(&out);
    visited()->VisitFields(writer);
    return out;
  }
  size_t ByteSizeLong() const { return SerializeAsString().size(); }
  std::string DebugString() const { return Text(false); }
  std::string ShortDebugString() const {
    std::string text = Text(true);
    if (!text.empty()) text.erase(text.size() - 1);
    return text;
  }
  void PrintDebugString() const { std::fputs(DebugString().c_str(), stdout); }
  void Clear() { *self() = M(); }
  void CopyFrom(const M& other) {
    if (self() != &other) *self() = other;
  }
  void MergeFrom(const M& other) {
    const std::string data = other.SerializeAsString();
    ReadMessage(Input(data.data(), data.size()), self(), kMaxDepth);
  }
  void Swap(M* other) { std::swap(*self(), *other); }
  bool IsInitialized() const { return true; }

 protected:
  ~Message() {}
  Message() {}
  Message(const Message&) {}
  Message& operator=(const Message&) { return *this; }

 private:
  static const int kMaxDepth = 100;
  M* self() { return static_cast<M*>(this); }
  // Writer and printer take fields as constants.
  M* visited() const { return const_cast<M*>(static_cast<const M*>(this)); }
  std::string Text(bool one_line) const {
    std::string out;
    Printer printer(&out, 0, one_line);
    visited()->VisitFields(printer);
    return out;
  }
};

}  // namespace pb
}  // namespace trtserver_client

// The names that programs use. A program that includes the protobuf library before this file keeps the library's.
#ifndef GOOGLE_PROTOBUF_VERSION
namespace google {
namespace protobuf {
typedef int32_t int32;
typedef int64_t int64;
typedef uint32_t uint32;
typedef uint64_t uint64;
template <typename T>
using RepeatedField = ::trtserver_client::pb::RepeatedField<T>;
template <typename T>
using RepeatedPtrField = ::trtserver_client::pb::RepeatedPtrField<T>;
template <typename K, typename V>
using Map = ::trtserver_client::pb::Map<K, V>;
}  // namespace protobuf
}  // namespace google
#endif

#endif
