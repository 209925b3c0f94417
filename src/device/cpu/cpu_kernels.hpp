// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/compute_threads.hpp"

#include "device/cpu/runtime/isa.hpp"

#include <memory>

namespace trireme::device::cpu {

/// Kernels of a chosen instruction set, which this CPU must have: so that tests compare all of
/// them on one machine. make_cpu_kernels takes the widest.
std::unique_ptr<Kernels> make_kernels(int threads, Isa isa, Tiling tiling = Tiling::for_threads,
                                      ThreadWait wait = {});

}  // namespace trireme::device::cpu
