#include "device/cuda/gemm/cublaslt.hpp"

#include "trireme/base/cuda_libraries.hpp"
#include "trireme/base/format.hpp"

#include <vector>

namespace trireme::device::cuda {
namespace {

std::vector<std::string> places() {
  const auto file = base::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  auto places = base::places_of_cuda_library(file);
  // Where this program was built, whatever is on PATH there.
  places.push_back(base::format("{}/{}", TRIREME_CUDA_LIBRARY_FOLDER, file));
  return places;
}

base::Result<Blas> load() {
  auto opened = base::OpenedLibrary::open(
      places(), "cuBLASLt (it multiplies matrices on cards)",
      base::format("install CUDA {}'s libraries, set CUDA_HOME, or add their folder to "
                   "LD_LIBRARY_PATH",
                   CUBLAS_VER_MAJOR));
  if (!opened.ok()) return opened.failure();
  auto& library = *opened;
  Blas blas;
  library.find("cublasLtCreate", blas.create);
  library.find("cublasLtDestroy", blas.destroy);
  library.find("cublasLtGetVersion", blas.version);
  library.find("cublasLtGetStatusString", blas.status_text);
  library.find("cublasLtMatmul", blas.matmul);
  library.find("cublasLtMatmulDescInit_internal", blas.init_operation);
  library.find("cublasLtMatmulDescSetAttribute", blas.set_operation);
  library.find("cublasLtMatrixLayoutInit_internal", blas.init_layout);
  library.find("cublasLtMatmulPreferenceInit_internal", blas.init_preference);
  library.find("cublasLtMatmulPreferenceSetAttribute", blas.set_preference);
  library.find("cublasLtMatmulAlgoGetHeuristic", blas.heuristic);
  library.find("cublasLtMatmulAlgoCheck", blas.check_algorithm);
  if (!library.missing().empty()) {
    return base::Failure{base::ExitCode::topology,
                         base::format("cuBLASLt lacks {} (another version than {}?); install the "
                                      "one that this program was built with",
                                      base::join(library.missing(), ", "), CUBLAS_VER_MAJOR)};
  }
  return blas;
}

}  // namespace

base::Result<const Blas*> load_blas() {
  static const base::Result<Blas> loaded = load();
  if (!loaded.ok()) return loaded.failure();
  return &loaded.value();
}

}  // namespace trireme::device::cuda
