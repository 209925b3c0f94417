// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace trireme::engine {

/// The other work of a rank in the arenas of its engine, made and run once over what the engine is
/// measured with.
using Beside = std::function<void(Engine&, const comm::AxisGroups&, device::Kernels&, Memory&)>;

/// Bytes that this rank needs: the engine, run over measuring memory for one step, and what stands
/// beside it, if anything.
MemoryUse measure(const EngineOptions& options, const Beside& beside = {});

/// Traffic of a training engine, computed with the step's own code over groups that pretend.
StepTraffic traffic_of(const EngineOptions& options);

/// Seconds that this rank would compute and exchange activations with its tensor-parallel peers in
/// a step of few micro-batches, one after the other: what ownership::MachineSpeeds makes of counted
/// FLOPs and bytes. For comparing options that compute the same in other ways.
double predicted_seconds(EngineOptions options);

/// GEMMs of linear layers that a step calls on a rank, computed with the step's own code: with
/// repeats, in order, their operands as aligned as in real arenas.
std::vector<device::GemmCall> gemm_calls_of(const EngineOptions& options);

}  // namespace trireme::engine
