// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"
#include "trireme/layout/box.hpp"

#include <vector>

namespace trireme::optim {

/// Matrices of which each of several ranks holds a part, on their way to their owners and back
/// together. All tensors are f32.
struct MicroGroup {
  device::Tensor parts;  // [ranks, elements]: this rank's parts, by owner, one after another
  device::Tensor
      received;  // [ranks, elements]: by holder, its parts of the matrices that are owned here
  /// A matrix that is owned here; in the order of the parts.
  struct Owned {
    /// [rank]: what it holds.
    const std::vector<layout::Box>* parts = nullptr;
    device::Tensor whole;  // [rows, columns]
  };
  std::vector<Owned> owned;
};

/// Way between parts of matrices and their owners. Each function is collective over the ranks, and
/// groups finish in the order in which they start.
class PartExchange {
 public:
  virtual ~PartExchange() = default;
  virtual int ranks() const = 0;
  virtual int rank() const = 0;

  /// Sends `parts`.
  virtual void start_gather(const MicroGroup& group) = 0;
  /// `whole` becomes the matrices whose `parts` the ranks hold.
  virtual void finish_gather(device::Kernels& kernels, const MicroGroup& group) = 0;
  /// Sends parts of `whole`.
  virtual void start_scatter(device::Kernels& kernels, const MicroGroup& group) = 0;
  /// `parts` become those of the owners' `whole`.
  virtual void finish_scatter(const MicroGroup& group) = 0;
  /// Makes progress without waiting.
  virtual void poll() = 0;
};

}  // namespace trireme::optim
