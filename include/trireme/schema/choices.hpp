// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/assignment.hpp"
#include "trireme/layout/schedule.hpp"

#include <array>
#include <string_view>

/// Enums whose values a key chooses among, each with the words for them beside it. Rooms use these
/// same enums; what a lower room needs, too, is declared there.
namespace trireme::schema {

/// Words for an enum's values, in their order: the choices of its keys.
template <typename Enum>
inline constexpr std::array<std::string_view, 0> choices_of{};

template <typename... Words>
consteval std::array<std::string_view, sizeof...(Words)> words(Words... text) {
  return {text...};
}

enum class Architecture { gpt2, llama, qwen3 };
template <>
inline constexpr auto choices_of<Architecture> = words("gpt2", "llama", "qwen3");

enum class RopeType { none, linear, llama3 };
template <>
inline constexpr auto choices_of<RopeType> = words("default", "linear", "llama3");

template <>
inline constexpr auto choices_of<layout::ScheduleKind> = layout::schedule_names;

enum class UpdateRule { adamw, sgd, muon, shampoo, soap };
template <>
inline constexpr auto choices_of<UpdateRule> = words("adamw", "sgd", "muon", "shampoo", "soap");

/// Coefficients of the steps of a Newton-Schulz iteration (optim/newton_schulz.hpp).
enum class NewtonSchulzCoefficients { simple, quintic, polar_express };
template <>
inline constexpr auto choices_of<NewtonSchulzCoefficients> = words("simple", "quintic",
                                                                   "polar_express");

/// Factor on the result of a Newton-Schulz iteration (optim/matrix_rule.hpp).
enum class MatrixScale { original, match_rms_adamw, unit_rms_norm };
template <>
inline constexpr auto choices_of<MatrixScale> = words("original", "match_rms_adamw",
                                                      "unit_rms_norm");

enum class LearningRateCurve { constant, cosine, linear, wsd };
template <>
inline constexpr auto choices_of<LearningRateCurve> = words("constant", "cosine", "linear", "wsd");

template <>
inline constexpr auto choices_of<layout::Assignment> = layout::assignment_names;

/// Memory that something lies in while nothing uses it.
enum class OffloadTo { none, host };
template <>
inline constexpr auto choices_of<OffloadTo> = words("none", "host");

enum class Precision { fp32, bf16, fp8 };
template <>
inline constexpr auto choices_of<Precision> = words("fp32", "bf16", "fp8");

enum class KernelBackend { automatic, reference, cpu, cuda };
template <>
inline constexpr auto choices_of<KernelBackend> = words("auto", "reference", "cpu", "cuda");

enum class AttentionKernels { automatic, own, cudnn };
template <>
inline constexpr auto choices_of<AttentionKernels> = words("auto", "own", "cudnn");

enum class CommBackend { automatic, mpi, shared, nccl, staged };
template <>
inline constexpr auto choices_of<CommBackend> = words("auto", "mpi", "shared", "nccl", "staged");

/// Transports between nodes that a run accepts.
enum class RdmaRule {
  automatic,  ///< no TCP where a node has NICs with RDMA
  required,   ///< only transports that are shown to be RDMA
  optional
};
template <>
inline constexpr auto choices_of<RdmaRule> = words("auto", "true", "false");

enum class RegisterBuffers { none, buffers, windows };
template <>
inline constexpr auto choices_of<RegisterBuffers> = words("none", "buffers", "windows");

/// Binding of ranks to cores of their own, or the launcher's binding.
enum class BindingRule { automatic, none };
template <>
inline constexpr auto choices_of<BindingRule> = words("auto", "none");

/// Order of ranks: by the network, or by the launcher's numbers.
enum class OrderRule {
  automatic,  ///< the network, unless tasks were distributed explicitly (srun --distribution)
  topology,
  launcher
};
template <>
inline constexpr auto choices_of<OrderRule> = words("auto", "topology", "slurm");

/// Ranks whose spans of recorded steps are sent.
enum class TraceRanks { sampled, single, first_of_node, all };
template <>
inline constexpr auto choices_of<TraceRanks> = words("sampled", "single", "first-of-node", "all");

}  // namespace trireme::schema
