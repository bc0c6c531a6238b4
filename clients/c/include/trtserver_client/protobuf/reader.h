// Reads serialized protobuf messages. C++11.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_PROTOBUF_READER_H
#define TRTSERVER_CLIENT_PROTOBUF_READER_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "fields.h"

namespace trtserver_client {
namespace pb {

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

}  // namespace pb
}  // namespace trtserver_client

#endif
