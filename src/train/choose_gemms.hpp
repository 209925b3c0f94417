// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/device/gemm_tuning.hpp"

#include <filesystem>
#include <span>

namespace trireme::train {

/// Files of GEMM choices; an empty path: none.
struct GemmChoiceFiles {
  /// File of the run itself: its choices are kept by every resumption of the run, on any machine.
  std::filesystem::path run;
  /// Folder of the user, for later runs.
  std::filesystem::path cache;
};

/// Collective over the world. Host-blocking: yes. Every rank computes GEMMs by the choices in the
/// run's file, then by those in the user's, both as the first rank reads them; those of `calls`
/// that are in neither are timed, by each rank its own, and of two choices for one GEMM the lowest
/// rank's is used on all. The first rank writes the list in use to the run's file, and new choices
/// to the user's. Only new choices are exchanged, by one rank of those that timed the same. A file
/// that cannot be read or is damaged is ignored, with a warning.
void choose_gemms(device::GemmTuning& tuning, std::span<const device::GemmCall> calls,
                  const GemmChoiceFiles& files, comm::ProcessGroup& world);

}  // namespace trireme::train
