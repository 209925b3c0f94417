// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/device.hpp"

#include "support/detached/stream.hpp"

#include <memory>

namespace trireme::testing {

/// An event of a stream of a detached device. Looking at it makes the stream move on, from the
/// second look on: whoever looks once and takes the answer for a wait is deceived.
device::Event event_of(device::Device& device, std::shared_ptr<DetachedStream> stream);
/// What is issued to the stream from now on begins after the event.
void let_follow(DetachedStream& stream, const device::Event& event);

/// A stream beside that of a detached device, for a library that stands in for a GPU's. Its work
/// may take its time; it moves on when somebody looks at an event that it leads to.
class DetachedSideStream final : public device::SideStream {
 public:
  DetachedSideStream(device::Device& device, const std::shared_ptr<DetachedOrder>& order)
      : device_(device), stream_(std::make_shared<DetachedStream>(order)) {}

  void* handle() override { return this; }
  void follow(const device::Event& event) override { let_follow(*stream_, event); }
  device::Event record() override { return event_of(device_, stream_); }

  DetachedStream& stream() { return *stream_; }

 private:
  device::Device& device_;
  /// Lives on while something waits for its work.
  std::shared_ptr<DetachedStream> stream_;
};

}  // namespace trireme::testing
