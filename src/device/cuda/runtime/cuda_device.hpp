// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/device.hpp"

#include "device/cuda/runtime/stream.hpp"

#include <string>

namespace trireme::device::cuda {

/// A GPU, and the stream on which everything of a rank runs.
class CudaDevice final : public Device {
 public:
  /// Device of one GPU; `gpu` counts as CUDA does.
  explicit CudaDevice(int gpu);

  const char* name() const override { return name_.c_str(); }
  bool is_host() const override { return false; }
  Arena arena(Purpose purpose, std::size_t capacity_bytes) override;
  Arena staging(Purpose purpose, std::size_t capacity_bytes) override;
  void copy_in(const void* from, const Tensor& to) override;
  void copy_out(const Tensor& from, void* to) override;
  void copy(const Tensor& from, const Tensor& to) override;
  device::Event record() override;
  void follow(const device::Event& event) override;
  std::unique_ptr<device::SideStream> side_stream(Priority priority) override;
  std::unique_ptr<device::Stopwatch> stopwatch() override;
  bool can_capture() const override { return true; }
  bool capturing() const override { return capturing_; }
  void begin_capture() override;
  std::unique_ptr<device::CapturedGraph> end_capture() override;
  void abandon_capture() override;
  std::size_t taken_bytes() override;

  StreamView stream() const { return stream_.view(); }
  /// Selects the GPU for the calling thread.
  void use() const;

 private:
  int gpu_;
  std::string name_;
  Stream stream_;
  bool capturing_ = false;
};

/// PCI address, "0000:1b:00.0", as topology writes it.
std::string bus_id_of(int gpu);

}  // namespace trireme::device::cuda
