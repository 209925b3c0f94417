// SPDX-License-Identifier: Apache-2.0
// Steps, evaluations and the state of an engine.
#include "trireme/engine/engine.hpp"

#include "trireme/telemetry/spans.hpp"

#include "parts.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace trireme::engine {

using device::Purpose;
using device::Tensor;

Engine::Engine(const EngineOptions& options, const comm::AxisGroups& groups,
               device::Kernels& kernels, Memory& memory)
    : parts_(new Parts(options, groups, kernels, memory)) {}

Engine::~Engine() {
  // Order: gathers under way are of peers' parameters too, and work in memory of the device.
  parts_->gather.reset();
  device::leave(device());
}

void Engine::initialise() {
  const auto& optimizer = parts_->updates().state();
  // Copied in parts: a device's rank needs no second copy of its whole model in host memory.
  constexpr std::int64_t part = std::int64_t{1} << 26;
  for (const auto& segment : optimizer.segments()) {
    const auto master = optimizer.master(segment);
    for (std::int64_t begin = 0; begin < segment.flat.size(); begin += part) {
      const auto count = std::min(part, segment.flat.size() - begin);
      const auto first = segment.flat.begin + begin;
      device::HostMirror mirror(device());
      model::initialise(parts_->stage, parts_->options.numerics.seed, {first, first + count},
                        mirror.of(master.slice(0, begin, count)));
      mirror.store();
    }
  }
  state_changed(0);
}

void Engine::state_changed(std::int64_t step) {
  parts_->finish_gathers();
  parts_->updates().state_changed(parts_->kernels, step);
  parts_->parameters_changed();
  parts_->finish_gathers();
}

TokenBuffers& Engine::batch(int index) {
  return parts_->batches.host(index);
}

SampleParts Engine::sample_parts() const {
  return parts_->sample_parts();
}

void Engine::expect_tokens(std::int64_t count) {
  parts_->expected_tokens = count;
}

ScheduleOutcome Engine::run_schedule() {
  auto& parts = *parts_;
  ScheduleOutcome outcome;
  parts.batches.set_loss_scale(parts.loss_scale());
  parts.batches.upload();
  parts.renew_weight_copies();
  auto& reduction = parts.reduction();
  reduction.begin_step();
  parts.with_weights(layout::Passes::both, [&] { parts.pipeline().run(parts.actions()); });
  outcome.bubble_seconds = parts.pipeline().take_waited_seconds();
  outcome.tensor_seconds = parts.take_tensor_seconds();
  outcome.parameters_seconds = parts.take_weights_seconds();
  if (parts.gathered) outcome.gathered_bytes = parts.gathered->gathered_bytes();
  // Order: collectives of a group end in the order of their start. Otherwise the sum of losses
  // would wait for gradients, and that time would be attributed to no phase.
  reduction.wait_on_stream();
  parts.totals = parts.own_totals(parts.pipeline().loss_sum());
  parts.totals.bubble_ns[static_cast<std::size_t>(parts.my_stage())] =
      std::llround(outcome.bubble_seconds * 1e9);
  return outcome;
}

ReduceOutcome Engine::reduce_gradients() {
  auto& parts = *parts_;
  auto& totals = parts.totals;
  ReduceOutcome outcome;
  auto& reduction = parts.reduction();
  reduction.finish();
  {
    const telemetry::SpanScope span(telemetry::SpanKind::norm);
    reduction.add_squares(totals.squares);
    sum_over_ranks(parts.groups, totals);
  }
  TRIREME_ENSURE(!parts.expected_tokens || *parts.expected_tokens == totals.tokens,
                 "a step has as many targets as were expected");
  parts.expected_tokens.reset();
  outcome.tokens = totals.tokens;
  outcome.loss =
      totals.loss.value() / static_cast<double>(std::max<std::int64_t>(1, totals.tokens));
  // Rounded to float: the boundaries of shards change the last bits of the double only, so the
  // norm, and the clipping that follows from it, are the same in every layout of the same sums.
  outcome.gradient_norm =
      static_cast<double>(static_cast<float>(std::sqrt(totals.squares.value())));
  const auto ranks = parts.options.sharding.mesh.world_size() / parts.schedule.stages;
  for (const auto ns : totals.bubble_ns) {
    outcome.stage_bubble_seconds.push_back(1e-9 * static_cast<double>(ns) / ranks);
  }
  outcome.exposed_seconds = reduction.take_exposed_seconds();
  outcome.busy_seconds = reduction.take_busy_seconds();
  return outcome;
}

UpdateOutcome Engine::update(const Update& step) {
  const telemetry::SpanScope span(telemetry::SpanKind::update);
  auto& parts = *parts_;
  const double clip = parts.options.numerics.clip_norm;
  const bool clips = clip > 0.0 && step.gradient_norm > clip;
  const float scale = clips ? static_cast<float>(clip / step.gradient_norm) : 1.0F;
  parts.finish_gathers();
  parts.updates().update(parts.kernels, parts.memory.of(Purpose::workspace), parts.gradients,
                         static_cast<float>(step.learning_rate), scale, step.step);
  const auto exchanges = parts.updates().take_exchange_times();
  UpdateOutcome outcome{.gather_seconds = exchanges.gather_seconds,
                        .scatter_seconds = exchanges.scatter_seconds,
                        .exposed_seconds = exchanges.exposed_seconds};
  const auto begin = telemetry::SpanClock::now();
  parts.parameters_changed();
  outcome.parameters_seconds =
      std::chrono::duration<double>(telemetry::SpanClock::now() - begin).count();
  outcome.exposed_seconds += outcome.parameters_seconds;
  return outcome;
}

EvaluationOutcome Engine::evaluate(const std::function<void(int)>& seen) {
  auto& parts = *parts_;
  parts.batches.upload();
  parts.finish_gathers();
  parts.renew_weight_copies();
  parts.with_weights(layout::Passes::forward_alone,
                     [&] { parts.pipeline().run_forward_only(parts.actions(), seen); });
  auto totals = parts.own_totals(parts.pipeline().loss_sum());
  sum_over_ranks(parts.groups, totals);
  parts.expected_tokens.reset();
  // Discarded: the time of an evaluation is not a training step's.
  static_cast<void>(parts.pipeline().take_waited_seconds());
  static_cast<void>(parts.take_tensor_seconds());
  static_cast<void>(parts.take_weights_seconds());
  return {totals.loss.value(), totals.tokens};
}

Tensor Engine::logits() {
  TRIREME_EXPECT(parts_->logits, "logits were not kept");
  parts_->chunks.back().logits(parts_->logits);
  return parts_->logits;
}

std::int64_t Engine::local_vocabulary() const {
  TRIREME_EXPECT(is_last_stage(), "only the last stage has logits");
  return parts_->chunks.back().local_vocabulary();
}

std::int64_t Engine::first_token() const {
  TRIREME_EXPECT(is_last_stage(), "only the last stage has logits");
  return parts_->chunks.back().first_token();
}

bool Engine::is_last_stage() const {
  return parts_->messages.back().is_last();
}

bool Engine::keeps_logits() const {
  return static_cast<bool>(parts_->logits);
}

bool Engine::trains() const {
  return parts_->trains();
}

Engine::GraphUse Engine::graph_use() const {
  return parts_->graphs.graph_use();
}

const layout::Schedule& Engine::schedule() const {
  return parts_->schedule;
}

const model::StageParameters& Engine::parameters() const {
  return parts_->stage;
}

const sharding::Sharding& Engine::sharding() const {
  return parts_->sharding;
}

const EngineOptions& Engine::options() const {
  return parts_->options;
}

std::int64_t Engine::global_batch() const {
  return engine::global_batch(parts_->options.schedule, parts_->options.sharding.mesh);
}

device::Device& Engine::device() const {
  return parts_->device();
}

}  // namespace trireme::engine
