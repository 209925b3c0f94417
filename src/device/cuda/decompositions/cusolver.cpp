// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/decompositions/cusolver.hpp"

#include "trireme/base/cuda_libraries.hpp"
#include "trireme/base/format.hpp"

namespace trireme::device::cuda {
namespace {

base::Result<Cusolver> load() {
  const auto file = base::format("libcusolver.so.{}", CUSOLVER_VER_MAJOR);
  auto places = base::places_of_cuda_library(file);
  // The build's own folder, whatever is on PATH there.
  places.push_back(base::format("{}/{}", TRIREME_CUDA_LIBRARY_FOLDER, file));
  auto opened = base::OpenedLibrary::open(
      places, "cuSOLVER (it decomposes the matrices of shampoo and soap on GPUs)",
      base::format("install cuSOLVER {} with CUDA's libraries, set CUDA_HOME, add their folder to "
                   "LD_LIBRARY_PATH, or set optimizer.name = muon",
                   CUSOLVER_VER_MAJOR));
  if (!opened.ok()) return opened.failure();
  auto& library = *opened;
  Cusolver functions;
  library.find("cusolverGetVersion", functions.version);
  library.find("cusolverDnCreate", functions.create);
  library.find("cusolverDnDestroy", functions.destroy);
  library.find("cusolverDnSetStream", functions.set_stream);
  library.find("cusolverDnSsyevd_bufferSize", functions.eigenvectors_length);
  library.find("cusolverDnSsyevd", functions.eigenvectors);
  library.find("cusolverDnDsyevd_bufferSize", functions.double_eigenvectors_length);
  library.find("cusolverDnDsyevd", functions.double_eigenvectors);
  library.find("cusolverDnSgeqrf_bufferSize", functions.qr_length);
  library.find("cusolverDnSgeqrf", functions.qr);
  library.find("cusolverDnSorgqr_bufferSize", functions.basis_length);
  library.find("cusolverDnSorgqr", functions.basis);
  if (auto status = library.check_symbols("cuSOLVER", CUSOLVER_VER_MAJOR); !status.ok()) {
    return status.failure();
  }
  return functions;
}

}  // namespace

base::Result<const Cusolver*> load_cusolver() {
  static const base::Result<Cusolver> loaded = load();
  if (!loaded.ok()) return loaded.failure();
  return &loaded.value();
}

}  // namespace trireme::device::cuda
