// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/device/gemm_tuning.hpp"

#include <filesystem>
#include <span>

namespace trireme::train {

/// Where lists of choices lie; an empty path: nowhere.
struct ProductFiles {
  /// The file of the run itself: what it began with stays, whoever resumes it, and wherever.
  std::filesystem::path run;
  /// The folder of the user, for runs to come.
  std::filesystem::path cache;
};

/// Collective over the world. Host-blocking: yes. Every rank computes products as the run's file
/// says, then as the user's does, both as the first rank finds them; those of `calls` that neither
/// names are timed, each rank its own, and of two choices for one product the lowest rank's counts,
/// on all. The first rank keeps the list in use in the run's file, and what is new in the user's.
/// Only what is new travels, from one rank of those that timed the same. A file that cannot be read
/// or is damaged is as good as none, with a warning.
void choose_products(device::GemmTuning& tuning, std::span<const device::GemmCall> calls,
                     const ProductFiles& files, comm::ProcessGroup& world);

}  // namespace trireme::train
