// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/kernels/run.hpp"
#include "device/lapack.hpp"

namespace trireme::device::cpu {

template <>
void run(Context&, const SymmetricEigenvectors& operation) {
  lapack::run(operation);
}

template <>
void run(Context&, const OrthonormaliseRows& operation) {
  lapack::run(operation);
}

}  // namespace trireme::device::cpu
