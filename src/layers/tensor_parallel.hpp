// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

#include <initializer_list>
#include <vector>

namespace trireme::layers {

// The seams between what tensor-parallel ranks compute apart and what they share (Shoeybi et al.
// 2019; with sequence parallelism, Korthikanti et al. 2022). Without sequence parallelism every
// rank has all rows of the residual stream; with it, a consecutive part of them.

// Collective over the tensor-parallel group; those that do not start one are joined: the device's
// next kernel finds the result, and the host has not waited for it.

/// Collective of tensor-parallel ranks under way. Until join() nobody writes what it reads, nor
/// reads what it writes, and the workspace gives back neither.
class [[nodiscard]] Pending {
 public:
  /// Joined.
  Pending() = default;
  /// Operation of the group on these tensors.
  Pending(const StageContext& context, comm::Work work,
          std::initializer_list<device::Tensor> tensors);

  /// Makes the device's next kernel find the result; the host has not waited for it.
  void join();

 private:
  const StageContext* context_ = nullptr;
  std::vector<device::ArenaLease> leases_;
  comm::Work work_;
};

/// Rows of all ranks, which may be on their way.
struct PendingRows {
  device::Tensor rows;
  Pending gather;

  const device::Tensor& join() {
    gather.join();
    return rows;
  }
};

/// Gather of what each rank has, in the order of the ranks.
void gather(const StageContext& context, const device::Tensor& own, const device::Tensor& all);

/// Whether ranks have parts of the residual stream's rows.
bool splits_rows(const StageContext& context);

/// Room for all rows of the residual stream; nothing where a rank has all of them.
device::Tensor room_for_rows(const StageContext& context, device::Arena& arena);
/// All rows of a tensor of which this rank has the local ones: gathered into `room`, or into the
/// workspace if there is none; the rows themselves where a rank has all of them.
device::Tensor gather_rows(const StageContext& context, const device::Tensor& local,
                           const device::Tensor& room = {});
/// With cuts: of some sequences, of which ranks have unequal parts.
PendingRows start_gather_rows(const StageContext& context, const device::Tensor& local,
                              const device::Tensor& room, const comm::Cuts& cuts = {});

/// Destination for a GEMM that is one of several terms of a sum, so that
/// `sum_rows(context, that, local)` leaves the sum's local rows in `local`.
device::Tensor terms_of(const StageContext& context, const device::Tensor& local);
void sum_rows(const StageContext& context, const device::Tensor& terms,
              const device::Tensor& local);
Pending start_sum_rows(const StageContext& context, const device::Tensor& terms,
                       const device::Tensor& local, const comm::Cuts& cuts = {});

/// Bias of a row-parallel GEMM: one rank adds it, or the sum would have it many times.
device::Tensor bias_of_one(const StageContext& context, const device::Tensor& bias);

}  // namespace trireme::layers
