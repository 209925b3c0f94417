#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/config/config.hpp"
#include "trireme/device/kernels.hpp"

#include <string>

namespace trireme::train {

/// What MFU divides by: FLOP/s of all ranks together, and where the number comes from.
struct Peak {
  double flops = 0;
  std::string source;
};

/// Collective over the world. numerics.peak_flops (of one rank) times the ranks, or else a square
/// matrix product timed on all ranks at once, in the run's precision.
Peak find_peak(const config::Config& config, device::Kernels& kernels, device::DType dtype,
               comm::ProcessGroup& world);

}  // namespace trireme::train
