// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/device.hpp"

#include <memory>

namespace trireme::device {

/// Passes everything on to another device, which outlives it; what derives from it does some of it
/// otherwise. Watchers and counts of waits are its own.
class PassingDevice : public Device {
 public:
  explicit PassingDevice(Device& inner) : inner_(inner) {}

  const char* name() const override { return inner_.name(); }
  bool is_host() const override { return inner_.is_host(); }
  Arena arena(Purpose purpose, std::size_t capacity_bytes) override {
    return inner_.arena(purpose, capacity_bytes);
  }
  Arena staging(Purpose purpose, std::size_t capacity_bytes) override {
    return inner_.staging(purpose, capacity_bytes);
  }
  void copy_in(const void* from, const Tensor& to) override { inner_.copy_in(from, to); }
  void copy_out(const Tensor& from, void* to) override { inner_.copy_out(from, to); }
  void copy(const Tensor& from, const Tensor& to) override { inner_.copy(from, to); }
  Event record() override { return inner_.record(); }
  void follow(const Event& event) override { inner_.follow(event); }
  std::size_t taken_bytes() override { return inner_.taken_bytes(); }
  void synchronize() override { inner_.synchronize(); }
  std::unique_ptr<SideStream> side_stream(Priority priority) override {
    return inner_.side_stream(priority);
  }
  std::unique_ptr<Stopwatch> stopwatch() override { return inner_.stopwatch(); }
  bool can_capture() const override { return inner_.can_capture(); }
  bool capturing() const override { return inner_.capturing(); }
  void begin_capture() override { inner_.begin_capture(); }
  std::unique_ptr<CapturedGraph> end_capture() override { return inner_.end_capture(); }
  void abandon_capture() override { inner_.abandon_capture(); }

 protected:
  Device& inner() { return inner_; }

 private:
  Device& inner_;
};

}  // namespace trireme::device
