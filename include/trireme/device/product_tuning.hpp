#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/tensor.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace trireme::device {

/// A product that was asked of kernels: which, and where its operands lie; not what they hold.
struct ProductCall {
  enum class Kind {
    forward,            ///< linear_forward(x, w, bias, result)
    quantised_forward,  ///< linear_forward_quantised({x, x_unscale}, {w, w_unscale}, bias, result)
    gelu_forward,       ///< linear_gelu_forward(x, w, bias, wide, result)
    backward_input,     ///< linear_backward_input(x = dy, w, result, false)
    accumulate_input,   ///< linear_backward_input(x = dy, w, result, true)
    backward_gelu,      ///< linear_backward_gelu(x = dy, w, wide, result)
    backward_weight,    ///< linear_backward_weight(x = dy, w = x, result, bias = d_bias)
  };
  Kind kind = Kind::forward;
  Tensor x;
  Tensor w;
  Tensor bias;
  Tensor wide;
  Tensor result;
  // Of a quantised product alone.
  Tensor x_unscale{};
  Tensor w_unscale{};
};

/// A library computes one product in many ways, whose speed is known only when they have run. What
/// is chosen decides the last bits of results, so all ranks of a run share one list of choices, and
/// runs repeat as long as they begin with the same. Products that are on no list are computed as
/// the library thinks best.
class ProductTuning {
 public:
  virtual ~ProductTuning() = default;

  /// Times what the library offers for those of the calls that nothing is chosen for, and chooses.
  /// Takes and gives back device memory as large as the largest call's operands. How many were new.
  virtual int choose(std::span<const ProductCall> calls) = 0;
  /// All that is chosen, as JSON; adopt() reads it.
  virtual std::string text() const = 0;
  /// The same for what choose() has added since the last adopt().
  virtual std::string news() const = 0;
  /// The number of products that something is chosen for.
  virtual std::size_t size() const = 0;
  /// Forgets what choose() has added since the last adopt(), and takes what the texts choose for
  /// products that nothing is chosen for yet: of two texts the earlier counts, and what was adopted
  /// before stays. Texts of other cards or versions are passed over. A failure: a text is no such
  /// list; the others are taken all the same.
  virtual base::Status adopt(std::span<const std::string> texts) = 0;
  /// A name for a file that keeps them: it names card and library.
  virtual std::string file_name() const = 0;
};

}  // namespace trireme::device
