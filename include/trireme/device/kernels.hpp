// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/attention_choice.hpp"
#include "trireme/device/device.hpp"
#include "trireme/device/gemm_tuning.hpp"
#include "trireme/device/library_memory.hpp"
#include "trireme/device/operations.hpp"
#include "trireme/device/tensor.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace trireme::device {

/// Kernels of a device. An instance issues to one stream of one device, in order; host backends
/// compute before they return. Sums are in fp32 and their order never depends on the number of
/// threads.
class Kernels {
 public:
  virtual ~Kernels() = default;
  /// "reference", "cpu", "cuda", "measuring".
  virtual const char* name() const = 0;
  /// Device on which tensors lie; its stream is the order in which everything here runs.
  virtual Device& device() { return host_device(); }
  /// Libraries that compute here: a line for people, or nothing.
  virtual std::string libraries() const { return {}; }
  /// Sentence about what will compute attention of this size; none where there is no choice. A
  /// failure (ExitCode::topology) if nothing here computes it.
  virtual base::Result<AttentionText> attention_text(const AttentionSize&) const {
    return AttentionText{};
  }
  /// Device memory that libraries hold at this moment.
  virtual std::vector<LibraryMemory> library_memory() const { return {}; }
  /// Opens the library of DecompositionOperations, where it is not linked: few runs need it. Throws
  /// base::Error (topology) where there is none.
  virtual void open_decompositions() {}
  /// Autotuning of GEMMs; null where there is none.
  virtual GemmTuning* gemm_tuning() { return nullptr; }

  /// Computes one operation (trireme/device/operations.hpp): issue(GeluForward{x, y}).
  void issue(const Operation& operation) {
    operation.check();
    compute(operation);
  }

  // Sums for the host.

  /// f32 only. A fixed tree over fixed chunks, in double; the host waits for it.
  virtual double sum_of_squares(const Tensor& x) = 0;
  /// Sum of the elements, in the same way.
  virtual double sum(const Tensor& x) = 0;
  /// The same numbers without a wait: the host gets them all together, later.
  virtual void start_sum_of_squares(const Tensor& x) { started_.push_back(sum_of_squares(x)); }
  virtual void start_sum(const Tensor& x) { started_.push_back(sum(x)); }
  /// Results of all sums started since the last call, in the order of their start. The host waits
  /// once.
  virtual std::vector<double> finish_sums() { return std::exchange(started_, {}); }

  /// All work issued so far is done when this returns.
  virtual void synchronize() = 0;

 protected:
  /// Computes an operation whose operands fit each other.
  virtual void compute(const Operation& operation) = 0;

 private:
  std::vector<double> started_;
};

/// Plain loops: the oracle of every other backend.
std::unique_ptr<Kernels> make_reference_kernels();
/// Division of GEMMs among threads (`numerics.deterministic`).
enum class Tiling {
  for_threads,  ///< as many tiles as keep the threads busy: the fastest
  by_shape,     ///< the same tiles for any number of threads, which so changes no bit
};
/// OpenMP threads, oneDNN GEMMs, AVX2 or AVX-512 chosen at run time.
std::unique_ptr<Kernels> make_cpu_kernels(int threads, Tiling tiling = Tiling::for_threads);
/// A GPU of this node, by its number as CUDA counts; own kernels, cuBLASLt and cuDNN on one
/// stream. Tensors lie in arenas of its device(). A failure (ExitCode::topology) says what this
/// build or node lacks.
base::Result<std::unique_ptr<Kernels>> make_cuda_kernels(int gpu,
                                                         const AttentionChoice& attention = {});
/// PCI bus ids of the GPUs that this process may use, by their numbers: "0000:1b:00.0". Fails like
/// make_cuda_kernels().
base::Result<std::vector<std::string>> gpu_bus_ids();
/// Does nothing: with measuring arenas, a whole step costs microseconds and touches no memory.
std::unique_ptr<Kernels> make_measuring_kernels();
/// Does nothing but collect each GEMM that is asked for.
std::unique_ptr<Kernels> make_gemm_collecting_kernels(std::vector<GemmCall>& calls);

}  // namespace trireme::device
