// SPDX-License-Identifier: Apache-2.0
#include "magnitudes.hpp"

namespace trireme::layers {

void join_magnitudes(comm::ProcessGroup& group, const device::Tensor& magnitudes) {
  if (group.size() == 1) return;
  // Maxima of floats lose NaNs where libraries compute them (NCCL's fmaxf, MPI's a > b ? a : b).
  // Bits of magnitudes, as integers, have the order of the numbers, and NaN is the largest.
  const device::Tensor bits(magnitudes.raw(), device::DType::i32, {magnitudes.element_count()});
  group.start_all_reduce(bits, comm::ReduceOp::max).wait_on_stream();
}

}  // namespace trireme::layers
