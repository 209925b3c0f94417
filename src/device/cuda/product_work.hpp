#pragma once

#include "trireme/device/product_tuning.hpp"

#include "device/cuda/matrix_product.hpp"

namespace trireme::device::cuda {

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
/// Whether more is done than the product and a bias.
bool does_more(const ProductCall& call);
/// Whether that may be asked of the library: its epilogues are for bf16, and its gelu for rows of
/// whole packs.
bool fuses(const ProductCall& call);
/// The product that is left when own kernels do the rest.
ProductCall unfused(const ProductCall& call);

/// Of an address, up to the 256 bytes that the library assumes unless told.
std::uint32_t alignment_of(const void* address);

}  // namespace trireme::device::cuda
