// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/config/config.hpp"
#include "trireme/device/kernels.hpp"

#include <string>

namespace trireme::train {

/// Denominator of MFU.
struct Peak {
  enum class Kind {
    given,       ///< numerics.peak_flops
    data_sheet,  ///< of GPUs in the table of data sheets
    measured     ///< the fastest product: too low where the machine was busy meanwhile
  };
  Kind kind = Kind::measured;
  /// FLOP/s of all ranks together.
  double flops = 0;
  /// Source of the number, for people.
  std::string source;
  /// FLOP/s of the fastest GEMM, of all ranks at once; 0 where none was measured.
  double gemm_flops = 0;

  /// Text of both numbers, for the first lines of a run.
  std::string text() const;
};

/// FLOP/s of the fastest of several square GEMMs in the type of a run.
double fastest_gemm(device::Kernels& kernels, device::DType dtype);

/// Collective over the world: fastest_gemm() of all ranks, at once and together.
double fastest_gemms(device::Kernels& kernels, device::DType dtype, comm::ProcessGroup& world);

/// The facts by which a rank's GEMMs are as fast as they are.
struct PeakSubject {
  device::DType dtype = device::DType::f32;
  /// Empty without a GPU.
  std::string gpu_bus_id;
  /// CPU, threads, where they are bound, program.
  std::string rank;
};

class KeptPeak;

/// Collective over the world. numerics.peak_flops (of one rank) times the ranks; else the sum over
/// the data sheets of all ranks' GPUs; else the rate of GEMMs that is kept of such ranks, or
/// measured now and kept.
Peak find_peak(const config::Config& config, device::Kernels& kernels, const PeakSubject& subject,
               KeptPeak& kept, comm::ProcessGroup& world);

}  // namespace trireme::train
