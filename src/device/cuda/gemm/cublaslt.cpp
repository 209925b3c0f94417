// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gemm/cublaslt.hpp"

#include "trireme/base/cuda_libraries.hpp"
#include "trireme/base/format.hpp"

#include <vector>

namespace trireme::device::cuda {
namespace {

std::vector<std::string> places() {
  const auto file = base::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  auto places = base::places_of_cuda_library(file);
  // The build's own folder, whatever is on PATH there.
  places.push_back(base::format("{}/{}", TRIREME_CUDA_LIBRARY_FOLDER, file));
  return places;
}

base::Result<CublasLt> load() {
  auto opened = base::OpenedLibrary::open(
      places(), "cuBLASLt (it multiplies matrices on GPUs)",
      base::format("install CUDA {}'s libraries, set CUDA_HOME, or add their folder to "
                   "LD_LIBRARY_PATH",
                   CUBLAS_VER_MAJOR));
  if (!opened.ok()) return opened.failure();
  auto& library = *opened;
  CublasLt functions;
  library.find("cublasLtCreate", functions.create);
  library.find("cublasLtDestroy", functions.destroy);
  library.find("cublasLtGetVersion", functions.version);
  library.find("cublasLtGetStatusString", functions.status_text);
  library.find("cublasLtMatmul", functions.matmul);
  library.find("cublasLtMatmulDescInit_internal", functions.init_operation);
  library.find("cublasLtMatmulDescSetAttribute", functions.set_operation);
  library.find("cublasLtMatrixLayoutInit_internal", functions.init_layout);
  library.find("cublasLtMatrixLayoutSetAttribute", functions.set_layout);
  library.find("cublasLtMatmulPreferenceInit_internal", functions.init_preference);
  library.find("cublasLtMatmulPreferenceSetAttribute", functions.set_preference);
  library.find("cublasLtMatmulAlgoGetHeuristic", functions.heuristic);
  library.find("cublasLtMatmulAlgoCheck", functions.check_algorithm);
  if (auto status = library.check_symbols("cuBLASLt", CUBLAS_VER_MAJOR); !status.ok()) {
    return status.failure();
  }
  return functions;
}

}  // namespace

base::Result<const CublasLt*> load_cublaslt() {
  static const base::Result<CublasLt> loaded = load();
  if (!loaded.ok()) return loaded.failure();
  return &loaded.value();
}

}  // namespace trireme::device::cuda
