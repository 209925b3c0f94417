// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/operations.hpp"
#include "trireme/device/tensor.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace trireme::device {

/// Any one of `GemmOperations` or `MatrixProductOperations`: which, and where its operands lie; not
/// what they hold.
struct GemmCall {
  enum class Kind {
    forward,            ///< LinearForward{x, w, bias, result}
    quantised_forward,  ///< LinearForwardQuantised{{x, x_unscale}, {w, w_unscale}, bias, result}
    gelu_forward,       ///< LinearGeluForward{x, w, bias, wide, result}
    backward_input,     ///< LinearBackwardInput{x = dy, w, result}
    backward_gelu,      ///< LinearBackwardGelu{x = dy, w, wide, result}
    backward_weight,    ///< LinearBackwardWeight{x = dy, w = x, result, bias = d_bias}
    symmetric_product,  ///< SymmetricProduct{x, added, result, factors, by = w}
    add_product,        ///< AddProduct{s = x, x = w = added, z = result, scale = factors.added}
  };
  Kind kind = Kind::forward;
  Tensor x;
  Tensor w;
  Tensor bias;
  Tensor wide;
  Tensor result;
  // Scales of quantised_forward alone.
  Tensor x_unscale{};
  Tensor w_unscale{};
  // Products of batches of matrices alone: result = factors.product * product + factors.added *
  // added.
  Tensor added{};
  struct Factors {
    float product = 1;
    float added = 0;
  };
  Factors factors{};
  Triangles triangles = Triangles::both;
};

inline GemmCall gemm_call(const LinearForward& linear) {
  return {GemmCall::Kind::forward, linear.x, linear.w, linear.bias, {}, linear.y};
}
inline GemmCall gemm_call(const LinearForwardQuantised& linear) {
  const auto& [x, w, bias, y] = linear;
  return {GemmCall::Kind::quantised_forward, x.codes, w.codes, bias, {}, y, x.unscale, w.unscale};
}
inline GemmCall gemm_call(const LinearGeluForward& linear) {
  return {GemmCall::Kind::gelu_forward, linear.x, linear.w, linear.bias, linear.wide, linear.y};
}
inline GemmCall gemm_call(const LinearBackwardInput& linear) {
  return {GemmCall::Kind::backward_input, linear.dy, linear.w, {}, {}, linear.dx};
}
inline GemmCall gemm_call(const LinearBackwardGelu& linear) {
  return {GemmCall::Kind::backward_gelu, linear.dy, linear.w, {}, linear.wide, linear.d_wide};
}
inline GemmCall gemm_call(const LinearBackwardWeight& linear) {
  return {GemmCall::Kind::backward_weight, linear.dy, linear.x, linear.d_bias, {}, linear.dw};
}

inline GemmCall gemm_call(const SymmetricProduct& product) {
  GemmCall call{GemmCall::Kind::symmetric_product, product.x, {}, {}, {}, product.y};
  call.w = product.by ? product.by : product.x;
  call.added = product.added;
  call.factors = {product.scale, product.added_scale};
  call.triangles = product.triangles;
  return call;
}
inline GemmCall gemm_call(const AddProduct& product) {
  GemmCall call{GemmCall::Kind::add_product, product.s, product.x, {}, {}, product.z};
  call.added = product.x;
  call.factors = {1.0F, product.scale};
  return call;
}

/// Autotuning of GEMMs. A library has many candidate algorithms for one GEMM, whose speed is known
/// only when they have run. The choice decides the last bits of results, so all ranks of a run
/// share one list of choices, and runs repeat as long as they begin with the same. GEMMs that are
/// on no list are computed as the library thinks best.
class GemmTuning {
 public:
  virtual ~GemmTuning() = default;

  /// Times the candidates for those of the calls that nothing is chosen for, and chooses.
  /// Takes and gives back device memory as large as the largest call's operands. Returns how many
  /// were new.
  virtual int choose(std::span<const GemmCall> calls) = 0;
  /// List of all choices, as JSON; adopt() reads it.
  virtual std::string text() const = 0;
  /// List of what choose() has added since the last adopt().
  virtual std::string news() const = 0;
  /// Number of GEMMs that an algorithm is chosen for.
  virtual std::size_t size() const = 0;
  /// Forgets what choose() has added since the last adopt(), and takes what the texts choose for
  /// GEMMs that nothing is chosen for yet: of two texts the earlier counts, and what was adopted
  /// before stays. Texts of other GPUs or versions are passed over. A failure: a text is no such
  /// list; the others are taken all the same.
  virtual base::Status adopt(std::span<const std::string> texts) = 0;
  /// Name for a file that keeps the list: it names GPU and library.
  virtual std::string file_name() const = 0;
};

}  // namespace trireme::device
