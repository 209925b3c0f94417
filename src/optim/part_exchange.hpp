// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/optim/optimizer.hpp"

#include <deque>
#include <utility>
#include <vector>

namespace trireme::optim {

/// Matrices of which each of several ranks holds a part, on their way to their owners and back
/// together. All tensors are f32.
struct MicroGroup {
  device::Tensor parts;     // [ranks, elements]: this rank's parts, by owner, one after another
  device::Tensor received;  // [ranks, elements]: by holder, its parts of what is owned here
  /// A matrix that is owned here; in the order of the parts.
  struct Owned {
    /// [rank]: what it holds.
    const std::vector<layout::Box>* parts = nullptr;
    device::Tensor whole;  // [rows, columns]
  };
  std::vector<Owned> owned;
};

/// Way between parts of matrices and their owners: one all-to-all brings the owners in a group the
/// parts of their matrices, one brings back the parts of what they made of them. Groups finish in
/// the order in which they start.
class PartExchange {
 public:
  explicit PartExchange(comm::ProcessGroup& holders) : holders_(holders) {}

  // Collective over the group. Host-blocking: no, on a device. Ordered on: its stream.

  /// Sends `parts`.
  void start_gather(const MicroGroup& group);
  /// `whole` becomes the matrices whose `parts` the ranks hold.
  void finish_gather(device::Kernels& kernels, const MicroGroup& group);
  /// Sends parts of `whole`.
  void start_scatter(device::Kernels& kernels, const MicroGroup& group);
  /// `parts` become those of the owners' `whole`.
  void finish_scatter();
  /// Makes progress without waiting.
  void poll();

  /// Times since the last call.
  ExchangeTimes take_times() { return std::exchange(times_, {}); }

 private:
  void start(const device::Tensor& from, const device::Tensor& to);
  /// End of the exchange that started first.
  void finish();

  comm::ProcessGroup& holders_;
  std::deque<comm::Work> under_way_;
  ExchangeTimes times_;
};

}  // namespace trireme::optim
