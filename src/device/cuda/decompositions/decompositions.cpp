// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/decompositions/decompositions.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "device/cuda/decompositions/cusolver.hpp"
#include "device/cuda/runtime/cuda_device.hpp"
#include "device/decompositions.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace trireme::device::cuda {
namespace {

constexpr auto mode = CUSOLVER_EIG_MODE_VECTOR;
constexpr auto triangle = CUBLAS_FILL_MODE_LOWER;

void check(cusolverStatus_t status, const char* call) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  throw base::Error(base::ExitCode::topology,
                    base::format("{}: cuSOLVER's status {}", call, static_cast<int>(status)));
}

/// cuSOLVER's matrices lie by columns. A symmetric one is the same by rows, and its eigenvectors,
/// columns there, are rows here.
class CusolverDecompositions final : public Decompositions {
 public:
  CusolverDecompositions(const Cusolver& library, CudaDevice& device)
      : library_(library), device_(device) {
    check(library_.create(&handle_), "cusolverDnCreate");
    check(library_.set_stream(handle_, device_.stream().raw()), "cusolverDnSetStream");
  }
  ~CusolverDecompositions() override {
    const auto status = library_.destroy(handle_);
    if (status == CUSOLVER_STATUS_SUCCESS) return;
    base::log::local::warning("device", "cusolverDnDestroy: status {}", static_cast<int>(status));
  }
  CusolverDecompositions(const CusolverDecompositions&) = delete;
  CusolverDecompositions& operator=(const CusolverDecompositions&) = delete;

  void run(const SymmetricEigenvectors& operation) override {
    const auto& [symmetric, vectors, values, workspace] = operation;
    device_.expect_no_capture("an eigendecomposition");
    const int n = side_of(vectors);
    if (symmetric.low) {
      solve_in_double(operation, n);
      return;
    }
    int length = 0;
    check(library_.eigenvectors_length(handle_, mode, triangle, n, vectors.f32(), n, values.f32(),
                                       &length),
          "cusolverDnSsyevd_bufferSize");
    device_.copy(symmetric.high, vectors);
    check(library_.eigenvectors(handle_, mode, triangle, n, vectors.f32(), n, values.f32(),
                                room(workspace, length), length, workspace.integers.i32()),
          "cusolverDnSsyevd");
    if (info(workspace, 0) != 0) solve_in_double(operation, n);
  }

  void run(const OrthonormaliseRows& operation) override {
    const auto& [x, reflections, workspace] = operation;
    device_.expect_no_capture("a QR decomposition");
    const int n = side_of(x);
    int qr_length = 0;
    int basis_length = 0;
    check(library_.qr_length(handle_, n, n, x.f32(), n, &qr_length), "cusolverDnSgeqrf_bufferSize");
    check(library_.basis_length(handle_, n, n, n, x.f32(), n, reflections.f32(), &basis_length),
          "cusolverDnSorgqr_bufferSize");
    auto* const memory = room(workspace, std::max(qr_length, basis_length));
    auto* const infos = workspace.integers.i32();
    check(library_.qr(handle_, n, n, x.f32(), n, reflections.f32(), memory, qr_length, infos),
          "cusolverDnSgeqrf");
    check(library_.basis(handle_, n, n, n, x.f32(), n, reflections.f32(), memory, basis_length,
                         infos + 1),
          "cusolverDnSorgqr");
    expect_decomposed("the QR decomposition", info(workspace, 0), n);
    expect_decomposed("the basis of a QR decomposition", info(workspace, 1), n);
  }

  std::size_t workspace_bytes() const override { return own_bytes_; }

  std::string library() const override {
    // 12004 is 12.0.4.
    int version = 0;
    check(library_.version(&version), "cusolverGetVersion");
    return base::format("cuSOLVER {}.{}.{}", version / 1000, version / 100 % 10, version % 100);
  }

 private:
  /// Info that the library gives at the end of a routine, once it is done.
  int info(const DecompositionWorkspace& workspace, std::int64_t place) {
    int said = 0;
    device_.copy_out(workspace.integers.slice(0, place, 1), &said);
    device_.synchronize();
    return said;
  }

  /// Memory for this many numbers: the operation's, or where that is too short, own memory, which
  /// grows. What was issued before may work in what it gives back.
  float* room(const DecompositionWorkspace& workspace, int length) {
    if (length <= length_of(workspace.reals)) return workspace.reals.f32();
    const auto bytes = static_cast<std::size_t>(length) * sizeof(float);
    if (bytes > own_bytes_) {
      device_.synchronize();
      own_ = {};
      own_bytes_ = 0;
      own_ = allocate_device(bytes);
      own_bytes_ = bytes;
    }
    return static_cast<float*>(own_.get());
  }

  /// Room for so many doubles behind `first` others: the operation's, or where that is too short
  /// `own`.
  static double* room_for_doubles(const DecompositionWorkspace& workspace, std::size_t first,
                                  std::size_t count, DeviceMemory& own) {
    if ((first + count) * sizeof(double) <= workspace.reals.byte_count()) {
      return static_cast<double*>(workspace.reals.raw()) + first;
    }
    own = allocate_device(count * sizeof(double));
    return static_cast<double*>(own.get());
  }

  void move(void* to, const void* from, std::size_t bytes, cudaMemcpyKind direction) {
    cuda::check(cudaMemcpyAsync(to, from, bytes, direction, device_.stream().raw()),
                "cudaMemcpyAsync");
  }

  /// Numbers go through the host, which turns them into doubles and back: this is for matrices that
  /// come once in a run, or hardly ever.
  void solve_in_double(const SymmetricEigenvectors& operation, int n) {
    const auto& [high, low] = operation.symmetric;
    const auto count = static_cast<std::size_t>(high.element_count());
    const auto side = static_cast<std::size_t>(n);
    std::vector<float> numbers(low ? 2 * count : count);
    device_.copy_out(high, numbers.data());
    if (low) device_.copy_out(low, numbers.data() + count);
    device_.synchronize();
    // The matrix, and its eigenvalues behind it.
    std::vector<double> doubles(count + side);
    const std::span<const float> all(numbers);
    widen(all.first(count), all.subspan(count), doubles.data());
    DeviceMemory own_matrix;
    auto* const a = room_for_doubles(operation.workspace, 0, doubles.size(), own_matrix);
    int length = 0;
    check(library_.double_eigenvectors_length(handle_, mode, triangle, n, a, n, a + count, &length),
          "cusolverDnDsyevd_bufferSize");
    DeviceMemory own_work;
    auto* const work = room_for_doubles(operation.workspace, doubles.size(),
                                        static_cast<std::size_t>(length), own_work);
    move(a, doubles.data(), doubles.size() * sizeof(double), cudaMemcpyHostToDevice);
    check(library_.double_eigenvectors(handle_, mode, triangle, n, a, n, a + count, work, length,
                                       operation.workspace.integers.i32()),
          "cusolverDnDsyevd");
    move(doubles.data(), a, doubles.size() * sizeof(double), cudaMemcpyDeviceToHost);
    expect_decomposed("the eigendecomposition", info(operation.workspace, 0), n);
    numbers.resize(count + side);
    std::transform(doubles.begin(), doubles.end(), numbers.begin(),
                   [](double value) { return static_cast<float>(value); });
    device_.copy_in(numbers.data(), operation.vectors);
    device_.copy_in(numbers.data() + count, operation.values);
    device_.synchronize();
  }

  const Cusolver& library_;
  CudaDevice& device_;
  cusolverDnHandle_t handle_ = nullptr;
  DeviceMemory own_;
  std::size_t own_bytes_ = 0;
};

}  // namespace

base::Result<std::unique_ptr<Decompositions>> open_decompositions(CudaDevice& device) {
  const auto library = load_cusolver();
  if (!library.ok()) return library.failure();
  return std::unique_ptr<Decompositions>(
      std::make_unique<CusolverDecompositions>(**library, device));
}

}  // namespace trireme::device::cuda
