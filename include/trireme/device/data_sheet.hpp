// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/dtype.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace trireme::device {

/// Rate of dense GEMMs of a GPU by its maker's data sheet, FLOP/s; sums in fp32. Nothing for GPUs
/// that the table does not know. `gpu` is its name as the driver gives it: "NVIDIA H100 80GB HBM3".
std::optional<double> data_sheet_flops(std::string_view gpu, DType dtype);

/// The name of a GPU that this process may use, by its PCI bus id. Fails like make_cuda_kernels().
base::Result<std::string> gpu_name(std::string_view bus_id);

}  // namespace trireme::device
