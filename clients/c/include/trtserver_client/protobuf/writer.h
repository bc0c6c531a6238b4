// Writes serialized protobuf messages. C++11.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_PROTOBUF_WRITER_H
#define TRTSERVER_CLIENT_PROTOBUF_WRITER_H

#include <cstdint>
#include <cstring>
#include <string>

#include "reader.h"

namespace trtserver_client {
namespace pb {

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

}  // namespace pb
}  // namespace trtserver_client

#endif
