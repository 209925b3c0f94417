// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <cusolverDn.h>

namespace trireme::device::cuda {

/// Functions of cuSOLVER that decompositions use. The library is opened when a run needs it, not
/// linked, as cuBLASLt is.
struct Cusolver {
  decltype(&cusolverGetVersion) version = nullptr;
  decltype(&cusolverDnCreate) create = nullptr;
  decltype(&cusolverDnDestroy) destroy = nullptr;
  decltype(&cusolverDnSetStream) set_stream = nullptr;
  decltype(&cusolverDnSsyevd_bufferSize) eigenvectors_length = nullptr;
  decltype(&cusolverDnSsyevd) eigenvectors = nullptr;
  decltype(&cusolverDnDsyevd_bufferSize) double_eigenvectors_length = nullptr;
  decltype(&cusolverDnDsyevd) double_eigenvectors = nullptr;
  decltype(&cusolverDnSgeqrf_bufferSize) qr_length = nullptr;
  decltype(&cusolverDnSgeqrf) qr = nullptr;
  decltype(&cusolverDnSorgqr_bufferSize) basis_length = nullptr;
  decltype(&cusolverDnSorgqr) basis = nullptr;
};

/// cuSOLVER, once for the process; a failure names the places that were searched.
base::Result<const Cusolver*> load_cusolver();

}  // namespace trireme::device::cuda
