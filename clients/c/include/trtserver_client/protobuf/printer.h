// The text form of protobuf messages. C++11.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_PROTOBUF_PRINTER_H
#define TRTSERVER_CLIENT_PROTOBUF_PRINTER_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fields.h"

namespace trtserver_client {
namespace pb {

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

}  // namespace pb
}  // namespace trtserver_client

#endif
