// Protobuf messages without a protobuf library. The generated message classes (`*.pb.h`) have
// protobuf's C++ names and use this file. C++11.
//
// Each message class has `template <typename V> void VisitFields(V& v)`, which calls v(number,
// name, field) for every field and v.OneOf(number, name, field, case) for those of a oneof. Reader,
// writer and text form are such visitors.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_PROTOBUF_H
#define TRTSERVER_CLIENT_PROTOBUF_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "protobuf/fields.h"
#include "protobuf/printer.h"
#include "protobuf/reader.h"
#include "protobuf/writer.h"

namespace trtserver_client {
namespace pb {

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

// The names that programs use. A program that includes the protobuf library before this file keeps
// the library's.
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
