#pragma once

#include "trireme/device/product_tuning.hpp"

#include "device/cuda/gemm/descriptor.hpp"

#include <vector>

namespace trireme::device::cuda {

/// Of a bias that the library reads or writes.
inline constexpr std::uint32_t bias_alignment = 16;

/// Addresses of a matrix product; those of an epilogue may be null.
struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  void* aux = nullptr;
  const void* bias = nullptr;
  /// f32 [1] each, of codes.
  const void* scale_a = nullptr;
  const void* scale_b = nullptr;
};

struct ProductWork {
  MatrixProduct product;
  ProductOperands operands;
};

/// A product of a linear layer as the library sees it, with all that is done on the way.
ProductWork work_of(const ProductCall& call);
/// Whether that may be asked of the library: its epilogues are for bf16, and its gelu for rows of
/// whole packs.
bool fuses(const ProductCall& call);
/// Whether the library may add it: its kernels read 16 bytes of a bias at once, and its heuristics
/// have not always asked where a bias lies.
bool fuses_bias(const Tensor& bias);
/// The product that is left when own kernels do the rest, but for a bias that is added to it.
ProductCall unfused(const ProductCall& call);
/// What may be asked of the library for a call, one after another until it offers something: the
/// first leaves the least to own kernels.
std::vector<ProductCall> forms_of(const ProductCall& call);

/// Of an address, up to the 256 bytes that the library assumes unless told.
std::uint32_t alignment_of(const void* address);

}  // namespace trireme::device::cuda
