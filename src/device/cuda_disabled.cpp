// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/data_sheet.hpp"
#include "trireme/device/kernels.hpp"

/// The cuda backend of a build without CUDA.
namespace trireme::device {
namespace {

constexpr const char* missing =
    "numerics.backend = cuda is not in this build (it was made without CUDA); configure with "
    "-DTRIREME_ENABLE_CUDA=ON where the toolkit is installed, or use cpu";

}  // namespace

base::Result<std::unique_ptr<Kernels>> make_cuda_kernels(int, const AttentionChoice&) {
  return base::Failure{base::ExitCode::topology, missing};
}

base::Result<std::vector<std::string>> gpu_bus_ids() {
  return base::Failure{base::ExitCode::topology, missing};
}

base::Result<std::string> gpu_name(std::string_view) {
  return base::Failure{base::ExitCode::topology, missing};
}

Arena Arena::cuda(Purpose, std::size_t) {
  throw base::Error(base::ExitCode::topology, missing);
}

Arena Arena::pinned(Purpose, std::size_t) {
  throw base::Error(base::ExitCode::topology, missing);
}

}  // namespace trireme::device
