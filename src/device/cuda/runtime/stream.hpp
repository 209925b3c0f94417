// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/handle.hpp"
#include "trireme/device/device.hpp"

#include "device/cuda/runtime/call.hpp"

/// Streams, events and memory of a GPU: owners, and views of them.
namespace trireme::device::cuda {

struct StreamTraits {
  using raw_type = cudaStream_t;
  static raw_type null() { return nullptr; }
  static const char* name() { return "CUDA stream"; }
  static std::optional<std::string> close(raw_type raw) {
    return close_result(cudaStreamDestroy(raw), "cudaStreamDestroy");
  }
};

struct EventTraits {
  using raw_type = cudaEvent_t;
  static raw_type null() { return nullptr; }
  static const char* name() { return "CUDA event"; }
  static std::optional<std::string> close(raw_type raw) {
    return close_result(cudaEventDestroy(raw), "cudaEventDestroy");
  }
};

struct DeviceMemoryTraits {
  using raw_type = void*;
  static raw_type null() { return nullptr; }
  static const char* name() { return "device memory"; }
  static std::optional<std::string> close(raw_type raw) {
    return close_result(cudaFree(raw), "cudaFree");
  }
};

struct PinnedMemoryTraits {
  using raw_type = void*;
  static raw_type null() { return nullptr; }
  static const char* name() { return "pinned host memory"; }
  static std::optional<std::string> close(raw_type raw) {
    return close_result(cudaFreeHost(raw), "cudaFreeHost");
  }
};

using DeviceMemory = base::UniqueHandle<DeviceMemoryTraits>;
using PinnedMemory = base::UniqueHandle<PinnedMemoryTraits>;

DeviceMemory allocate_device(std::size_t bytes);
PinnedMemory allocate_pinned(std::size_t bytes);

class EventView {
 public:
  explicit EventView(cudaEvent_t raw) : raw_(raw) {}
  cudaEvent_t raw() const { return raw_; }
  /// True if the recorded work is done.
  bool passed() const;
  /// Blocks the host until the recorded work is done.
  void wait() const;

 private:
  cudaEvent_t raw_;
};

/// Seconds of the device between two events; both have passed and have clocks.
double seconds_between(EventView begin, EventView end);

/// Owner of an event, which orders streams and the host.
class Event {
 public:
  /// Event without a clock, which would cost time.
  static Event make();
  static Event make_timed();
  EventView view() const { return EventView(handle_.get()); }
  base::Status close() { return handle_.close(); }

 private:
  static Event with(unsigned flags);

  base::UniqueHandle<EventTraits> handle_;
};

class StreamView {
 public:
  explicit StreamView(cudaStream_t raw) : raw_(raw) {}
  cudaStream_t raw() const { return raw_; }
  void record(EventView event) const;
  /// Work issued to this stream from now on starts after the event.
  void wait_for(EventView event) const;
  /// Blocks the host until all work issued so far is done.
  void synchronize() const;

 private:
  cudaStream_t raw_;
};

/// Owner of a stream that does not wait for the legacy default stream.
class Stream {
 public:
  static Stream make();
  /// Stream whose blocks go before those of make()'s streams.
  static Stream make_before_others(Priority priority);
  StreamView view() const { return StreamView(handle_.get()); }
  base::Status close() { return handle_.close(); }

 private:
  base::UniqueHandle<StreamTraits> handle_;
};

}  // namespace trireme::device::cuda
