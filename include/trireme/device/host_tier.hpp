// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/passing_device.hpp"

#include <memory>
#include <span>

namespace trireme::device {

/// A contiguous tensor whose home is host memory, and its place in a device's while that uses it.
struct Guest {
  Tensor home;
  Tensor place;
};

/// A device with host memory behind its own. Whoever reads or writes tensors from the host finds
/// those there, too: copies between a home and the host begin when nothing under way uses it, and
/// are done when the call returns. Copies between homes and places lie beside the device's work.
class HostTier final : public PassingDevice {
 public:
  /// `homes`: of Purpose::offloaded. It and the device outlive this.
  HostTier(Device& device, const Arena& homes);

  bool is_home(const void* address) const;

  /// Issues copies of homes to their places, which begin when the places are `free` and what was
  /// stored lies in the homes. The event: they are done.
  Event fetch(std::span<const Guest> guests, const Event& free);
  /// Issues copies of places to their homes, which begin when the places are `ready`. The event:
  /// they are done.
  Event store(std::span<const Guest> guests, const Event& ready);
  /// Bytes that both have moved, either way.
  std::size_t moved_bytes() const { return moved_bytes_; }

  void copy_in(const void* from, const Tensor& to) override;
  void copy_out(const Tensor& from, void* to) override;
  /// Copies under way are done, too.
  void synchronize() override;

 private:
  void await_copies();

  const Arena& homes_;
  /// Null on the host, whose copies are done when they are issued. Both ways at once.
  std::unique_ptr<SideStream> in_;
  std::unique_ptr<SideStream> out_;
  bool is_fetching_ = false;
  bool is_storing_ = false;
  std::size_t moved_bytes_ = 0;
};

}  // namespace trireme::device
