// SPDX-License-Identifier: Apache-2.0
#include "support/detached/side_stream.hpp"

#include <stdexcept>
#include <utility>

namespace trireme::testing {
namespace {

class Point final : public device::Event::Point {
 public:
  Point(device::Device& device, std::shared_ptr<DetachedStream> stream)
      : device_(device), place_(std::move(stream)) {}
  bool passed() override {
    if (looked_) place_.run();
    looked_ = true;
    return place_.passed();
  }
  void block() override {
    // What takes its time may need this very thread to go on.
    if (!place_.run()) throw std::logic_error("the host blocks on work that nobody drives");
  }
  void* handle() override { return &place_; }
  device::Device& device() override { return device_; }

 private:
  device::Device& device_;
  DetachedPlace place_;
  bool looked_ = false;
};

}  // namespace

device::Event event_of(device::Device& device, std::shared_ptr<DetachedStream> stream) {
  return device::Event(std::make_unique<Point>(device, std::move(stream)));
}

void let_follow(DetachedStream& stream, const device::Event& event) {
  auto* const point = event.point();
  if (point == nullptr) return;
  const auto place = *static_cast<const DetachedPlace*>(point->handle());
  stream.issue_until([place] { return place.run(); });
}

}  // namespace trireme::testing
