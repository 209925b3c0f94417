// SPDX-License-Identifier: Apache-2.0
// Iterations with many special cases: LAPACK's are what others are compared with.
#include "device/lapack.hpp"
#include "device/reference/reference.hpp"

namespace trireme::device::reference {

template <>
void run(const SymmetricEigenvectors& operation) {
  lapack::run(operation);
}

template <>
void run(const OrthonormaliseRows& operation) {
  lapack::run(operation);
}

}  // namespace trireme::device::reference
