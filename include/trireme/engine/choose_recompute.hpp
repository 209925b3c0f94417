// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/engine/options.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// train.activation_checkpointing = auto: what each stage computes again so that its ranks fit
/// into train.memory_limit.
namespace trireme::engine {

/// Sets of kinds of activations that a stage may discard in all of its layers, without kinds that
/// another one of the set holds; the first is empty.
std::vector<layers::Recompute> recompute_sets();

/// The same options with another recomputation, and what depends on it.
EngineOptions with_recompute(EngineOptions options, const layers::Recompute& recompute);

/// Choice of a stage, and what it costs.
struct ChosenRecompute {
  layers::Recompute recompute;
  /// Memory that it frees.
  std::size_t freed_bytes = 0;
  /// Share that a step's forward and backward take longer, predicted from counted FLOPs, bytes and
  /// bytes between tensor-parallel ranks.
  double longer = 0;

  /// "norms,activation are computed again in backward: ...".
  std::string text() const;
};

/// Bytes beyond the limit, in mebibytes, rounded up; 0 if there are none.
std::int32_t mebibytes_over(std::size_t bytes, std::int64_t limit);

/// The cheapest set for the stage of options.sharding.rank that frees so much of what `total`
/// counts: the same on all of its ranks. Kinds of activations are discarded in all layers, whole
/// layers in as many of the first as it takes. The failure is a user's mistake: all layers together
/// do not free so much.
base::Result<ChosenRecompute> choose_recompute(
    const EngineOptions& options, std::int32_t mebibytes,
    const std::function<std::size_t(const EngineOptions&)>& total);

/// Whether a run is refused where the activations that its schedule holds do not fit into the limit
/// (0: there is none): that of zb-h2 over more than one stage.
bool must_fit(const EngineOptions& options, std::int64_t limit);

/// Refuses schedule zb-h2 where the activations of its 2p - 1 micro-batches must fit and do not,
/// with what `total` counts for it and for zb-h1.
base::Status check_held_activations(const EngineOptions& options, std::int64_t limit,
                                    const std::function<std::size_t(const EngineOptions&)>& total);

}  // namespace trireme::engine
