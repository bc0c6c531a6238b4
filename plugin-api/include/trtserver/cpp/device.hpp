// SPDX-License-Identifier: Apache-2.0 GPUs: events, copies, and memory of the host. When memory of
// the host is ready: trts.device in ../extensions.h.
#ifndef TRTSERVER_CPP_DEVICE_HPP
#define TRTSERVER_CPP_DEVICE_HPP

#include "base.hpp"

namespace trtserver {

constexpr trts_memory cpu_memory() noexcept { return {TRTS_MEMORY_CPU, 0}; }
constexpr trts_memory pinned_memory() noexcept { return {TRTS_MEMORY_PINNED, 0}; }
constexpr trts_memory gpu_memory(std::int32_t device_id) noexcept { return {TRTS_MEMORY_GPU, device_id}; }

// A point in the work of a stream (CUstream); counts as reached until it is recorded. Made by
// Scope::event. Move it to any thread. Destroyed, it is freed, reached or not.
class Event {
public:
  explicit Event(trts_event *raw) noexcept : raw_(raw) {}
  Event(Event &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Event &operator=(Event &&other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Event() {
    if (raw_ != nullptr) {
      detail::device->event_destroy(raw_);
    }
  }

  // Moves the event to the end of what was submitted to the stream so far.
  void record(void *stream) const { detail::check(detail::device->event_record(raw_, stream)); }
  // Makes later work of the stream wait for the event. Does not block this thread.
  void wait(void *stream) const { detail::check(detail::device->event_wait(raw_, stream)); }
  bool reached() const {
    std::uint32_t reached = 0;
    detail::check(detail::device->event_query(raw_, &reached));
    return reached != 0;
  }
  // Gives the event to a function that takes ownership.
  trts_event *release() noexcept { return std::exchange(raw_, nullptr); }

private:
  trts_event *raw_;
};

// Copies bytes between any two memories in the order of the stream; without a stream, returns when
// the copy is done. Both must stay valid until then.
inline void copy(void *to, trts_memory to_memory, const void *from, trts_memory from_memory, std::uint64_t bytes,
                 void *stream) {
  if (detail::device == nullptr) {
    throw Error::unsupported("this host has no extension '" TRTS_EXTENSION_DEVICE "'");
  }
  detail::check(detail::device->copy(to, to_memory, from, from_memory, bytes, stream));
}

// Makes later work of the stream wait until memory of the host is ready; not needed on the
// instance's compute stream.
inline void wait_ready(const trts_buf &block, void *stream) {
  if (block.ready != nullptr) {
    detail::check(detail::device->event_wait(block.ready, stream));
  }
}

// Memory of the host for the backend's own use, made by Scope::allocate. Freed when destroyed; not
// after its scope is closed.
class HostMemory {
public:
  explicit HostMemory(const trts_buf &block) noexcept : block_(block) {}
  HostMemory(HostMemory &&other) noexcept : block_(std::exchange(other.block_, trts_buf{})) {}
  HostMemory &operator=(HostMemory &&other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~HostMemory() { free(nullptr); }

  void *data() const noexcept { return block_.ptr; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(block_.bytes); }
  trts_memory memory() const noexcept { return block_.memory; }
  // Frees the memory once the event is reached.
  void free_after(Event event) noexcept { free(event.release()); }

private:
  void free(trts_event *after) noexcept {
    if (block_.memory_handle != 0) {
      detail::memory->memory_free(block_.memory_handle, after);
    }
    block_ = trts_buf{};
  }

  trts_buf block_;
};

} // namespace trtserver

#endif
