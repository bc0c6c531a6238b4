// Containers for the fields of protobuf messages, with protobuf's names. C++11.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_PROTOBUF_FIELDS_H
#define TRTSERVER_CLIENT_PROTOBUF_FIELDS_H

#include <cstddef>
#include <iterator>
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

}  // namespace pb
}  // namespace trtserver_client

#endif
