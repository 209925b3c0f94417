// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

namespace trireme::layers {

// The seams between what tensor-parallel ranks compute apart and what they share (Shoeybi et al.
// 2019; with sequence parallelism, Korthikanti et al. 2022). Without sequence parallelism every
// rank has all rows of the residual stream; with it, a consecutive part of them.

// Collective over the tensor-parallel group, joined: the device's next kernel finds the result, and
// the host has not waited for it.

/// Gather of what each rank has, in the order of the ranks.
void gather(const StageContext& context, const device::Tensor& own, const device::Tensor& all);

/// Room for all rows of the residual stream; nothing where a rank has all of them.
device::Tensor room_for_rows(const StageContext& context, device::Arena& arena);
/// All rows of a tensor of which this rank has the local ones: gathered into `room`, or into the
/// workspace if there is none; the rows themselves where a rank has all of them.
device::Tensor gather_rows(const StageContext& context, const device::Tensor& local,
                           const device::Tensor& room = {});

/// Destination for a GEMM that is one of several terms of a sum, so that
/// `sum_rows(context, that, local)` leaves the sum's local rows in `local`.
device::Tensor terms_of(const StageContext& context, const device::Tensor& local);
void sum_rows(const StageContext& context, const device::Tensor& terms,
              const device::Tensor& local);

/// Bias of a row-parallel GEMM: one rank adds it, or the sum would have it many times.
device::Tensor bias_of_one(const StageContext& context, const device::Tensor& bias);

}  // namespace trireme::layers
