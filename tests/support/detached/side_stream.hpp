#pragma once

#include "trireme/device/device.hpp"

#include "support/detached/stream.hpp"

#include <cstdint>
#include <deque>
#include <functional>

namespace trireme::testing {

/// A stream beside that of a detached device, for a library that stands in for a card's. Its work
/// may take its time; it moves on when somebody looks at one of its events.
class DetachedSideStream final : public device::SideStream {
 public:
  explicit DetachedSideStream(DetachedStream& beside) : beside_(beside) {}

  void* handle() override { return this; }
  void follow() override;
  device::Event record() override;

  /// `work` is called in its turn until it says that it is done. Whoever destroys the stream before
  /// that leaves the work undone.
  void issue(std::function<bool()> work);
  std::uint64_t done() const { return done_; }
  void advance();

 private:
  DetachedStream& beside_;
  std::deque<std::function<bool()>> waiting_;
  std::uint64_t issued_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace trireme::testing
