// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/dtype.hpp"

#include "device/cpu/runtime/isa.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace trireme::device::cpu {

/// GEMM of two blocks of row-major matrices, c = a * b, in everything but the addresses.
/// A transposed operand lies in memory as [columns, rows]. Sums are in fp32.
struct BlockDescriptor {
  std::int64_t rows = 0;     // rows of a and c
  std::int64_t columns = 0;  // columns of b and c
  std::int64_t inner = 0;    // columns of a, rows of b
  /// Elements between neighbouring rows as they lie in memory.
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t c_stride = 0;
  DType in = DType::f32;   ///< type of a, b and bias
  DType out = DType::f32;  ///< type of c
  bool a_transposed = false;
  bool b_transposed = false;
  bool with_bias = false;   ///< c = a * b + bias
  bool accumulate = false;  ///< c += instead of c =

  auto operator<=>(const BlockDescriptor&) const = default;
};

/// The addresses of one GEMM.
struct BlockOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;  // [columns]
};

/// Method for GEMMs of bf16.
enum class Bf16Gemm {
  native,   ///< instructions for bf16 (AVX512-BF16, AMX) or oneDNN's substitute for them
  widened,  ///< operands become f32 first: where the CPU has no AVX-512
};
/// Best method of this CPU; code for AVX2 never uses wider instructions.
Bf16Gemm bf16_gemm_of(Isa isa);

/// GEMMs of blocks on the calling thread alone, through oneDNN. A descriptor is compiled once and
/// kept. An object belongs to one thread at a time. The bits of a result depend on the descriptor,
/// not on how many threads a caller has.
class BlockGemm {
 public:
  explicit BlockGemm(Bf16Gemm bf16);
  BlockGemm(const BlockGemm&) = delete;
  BlockGemm& operator=(const BlockGemm&) = delete;
  BlockGemm(BlockGemm&&) noexcept;
  BlockGemm& operator=(BlockGemm&&) noexcept;
  ~BlockGemm();

  class Prepared;
  /// Compiles the descriptor, or finds what was compiled. Valid until `trim` or the end of this
  /// object.
  Prepared& prepare(const BlockDescriptor& descriptor);
  void run(Prepared& prepared, const BlockOperands& operands);
  void run(const BlockDescriptor& descriptor, const BlockOperands& operands) {
    run(prepare(descriptor), operands);
  }

  /// Forgets all descriptors when there are too many, as in a program whose lengths keep
  /// changing.
  void trim();
  /// Memory for packed operands, outside of any arena.
  std::size_t workspace_bytes() const;

 private:
  struct Workspace;

  Bf16Gemm bf16_;
  std::unique_ptr<Workspace> workspace_;
  std::map<BlockDescriptor, std::unique_ptr<Prepared>> prepared_;
};

/// Scope in which oneDNN starts no threads of its own on this thread.
class SerialScope {
 public:
  SerialScope();
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  int threads_;
};

}  // namespace trireme::device::cpu
