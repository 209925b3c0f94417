// SPDX-License-Identifier: Apache-2.0
// Updates of an engine: the optimizer, where its state lies, and when gradients are reduced.
#include "trireme/base/log.hpp"

#include "parts.hpp"

#include <cstring>
#include <utility>

namespace trireme::engine {

using device::Purpose;
using layout::Axis;

namespace {

/// Zeroes state of a device, whose fresh memory is undefined (the host's is zero): what lies
/// between tensors goes into checkpoints too, and those of equal runs are equal.
void clear_state(const optim::OptimizerState& state, const std::vector<optim::Segment>& buckets,
                 device::Kernels& kernels, const device::HostTier* tier) {
  const auto clear = [&](const device::Tensor& x) {
    if (x.element_count() == 0) return;
    if (tier != nullptr && tier->is_home(x.raw())) {
      std::memset(x.raw(), 0, x.byte_count());
    } else {
      kernels.issue(device::Fill{x, 0.0F});
    }
  };
  for (const auto& each : state.all()) clear(each.values);
  if (const auto& owned = state.owner_states()) clear(owned);
  for (const auto& bucket : buckets) clear(state.master(bucket));
}

}  // namespace

void Engine::Parts::make_updates() {
  const auto& rule = optim::traits(options.sharding.rule.kind);
  if (rule.has_owner_states) kernels.open_decompositions();
  auto& tensor = groups.on(Axis::tensor);
  const bool exchanges = rule.updates_matrices && tensor.size() > 1;
  std::optional<optim::StateOffload> offload;
  if (options.memory.optimizer_home == Home::host) {
    auto& homes = memory.of(Purpose::offloaded);
    tier.emplace(kernels.device(), homes);
    offload.emplace(optim::StateOffload{*tier, homes, options.memory.chunk_bytes});
  }
  optimizer.emplace(
      options.sharding.rule, own_updates.segments, own_updates.sizes, parameters,
      memory.of(Purpose::optimizer),
      optim::Peers{exchanges ? &tensor : nullptr, exchanges ? &tensor : &groups.replicas()},
      offload);
  if (!kernels.device().is_host()) {
    clear_state(optimizer->state(), own_updates.buckets, kernels, tier ? &*tier : nullptr);
  }
  GradientMemory of_gradients{flat_gradients, nullptr, {}, {}};
  if (options.sharding.divides_gradients()) {
    of_gradients = {flat_gradients, &*units, gradients, own_updates.buckets};
    tell_of_gradients();
  }
  reducer.emplace(sharding, groups, std::move(of_gradients), kernels,
                  memory.of(Purpose::communication));
  if (sharding.divides_updates() && !gathered && groups.replicas().size() > 1) {
    gather.emplace(sharding, groups.replicas(), kernels.device());
  }
  say_rules();
}

/// Lets leases of weights tell which part of the model adds to gradients, and where it ends.
void Engine::Parts::tell_of_gradients() {
  const auto begins = [this](const model::Place& place) { reduction().prepare(place); };
  if (gathered) return gathered->on_gradients(begins);
  // Graph breaks: what is under way, and where gradients begin, differs from run to run of a part.
  resident.on_gradients(
      [this, begins](const model::Place& place) {
        graphs.outside([begins, place] { begins(place); });
      },
      [this](const model::Place& place) {
        graphs.outside([this, place] { reduction().completed_micro_batch(place); });
      });
}

optim::Optimizer& Engine::Parts::updates() {
  TRIREME_EXPECT(optimizer.has_value(), "only training has optimizer state");
  return *optimizer;
}

/// Tells which rule updates what, where there are two.
void Engine::Parts::say_rules() const {
  if (!optim::traits(options.sharding.rule.kind).updates_matrices ||
      memory.of(Purpose::batch).is_measuring()) {
    return;
  }
  std::int64_t matrices = 0;
  std::int64_t elements = 0;
  for (const auto& parameter : stage.parameters()) {
    if (!model::is_rule_matrix(parameter, options.sharding.matrices)) continue;
    ++matrices;
    elements += layout::element_count(parameter.tensor.shape);
  }
  base::log::info("engine",
                  "{} updates {} matrices of layers ({:.1f} % of the parameters), adamw the others",
                  optim::name(options.sharding.rule.kind), matrices,
                  100.0 * static_cast<double>(elements) /
                      static_cast<double>(model::parameter_count(options.model)));
  if (options.sharding.assignment_reason.empty()) return;
  base::log::info("engine", "optimizer.assignment = {}: {}",
                  ownership::name(options.sharding.assignment), options.sharding.assignment_reason);
}

}  // namespace trireme::engine
