#pragma once

#include "trireme/device/device.hpp"

#include "device/cuda/runtime/stream.hpp"

#include <string>

namespace trireme::device::cuda {

/// A card, and the stream on which everything of a rank runs.
class CudaDevice final : public Device {
 public:
  /// `card` counts as CUDA does.
  explicit CudaDevice(int card);

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
  bool can_record() const override { return true; }
  bool recording() const override { return recording_; }
  void begin_recording() override;
  std::unique_ptr<device::Recording> end_recording() override;
  void abandon_recording() override;
  std::size_t taken_bytes() override;

  StreamView stream() const { return stream_.view(); }
  /// Whatever card the calling thread used before.
  void use() const;

 private:
  int card_;
  std::string name_;
  Stream stream_;
  bool recording_ = false;
};

/// "0000:1b:00.0", as topology writes it.
std::string bus_id_of(int card);

}  // namespace trireme::device::cuda
