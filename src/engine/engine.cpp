// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/engine.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"
#include "trireme/engine/stage_layers.hpp"
#include "trireme/layout/simulate.hpp"
#include "trireme/telemetry/spans.hpp"

#include "host_sum.hpp"
#include "parts.hpp"

#include <algorithm>
#include <array>

namespace trireme::engine {

using device::Purpose;
using device::Tensor;
using layout::Axis;

namespace {

/// [chunk]: layers of a rank's stage.
std::vector<layout::LayerRange> chunks_of(const EngineOptions& options) {
  const auto& mesh = options.sharding.mesh;
  const int stage = mesh.coordinate(Axis::pipeline, options.sharding.rank);
  const auto ranges = base::value_or_throw(
      layout::assign_layers(options.model.num_hidden_layers, mesh.degree(Axis::pipeline),
                            options.schedule.virtual_stages, stage_layers(options).counts));
  return ranges[static_cast<std::size_t>(stage)];
}

/// Schedule; with one stage there is nothing to overlap: each backward right after its forward
/// holds the fewest activations, and a table shared by embedding and head gets its gradients in one
/// order.
base::Result<layout::Schedule> schedule_of(const EngineOptions& options) {
  const int stages = options.sharding.mesh.degree(Axis::pipeline);
  const auto kind = stages == 1 && options.schedule.virtual_stages == 1
                        ? layout::ScheduleKind::one_forward_one_backward
                        : options.schedule.kind;
  return layout::make_schedule(kind, stages, options.schedule.micro_batches,
                               options.schedule.virtual_stages);
}

/// Micro-batches whose activations each chunk of the rank holds at once.
std::vector<int> activation_slots(const EngineOptions& options, const layout::Schedule& schedule) {
  if (options.use != Use::training) {
    return std::vector<int>(static_cast<std::size_t>(options.schedule.virtual_stages), 1);
  }
  const int stage = options.sharding.mesh.coordinate(Axis::pipeline, options.sharding.rank);
  const auto simulation = base::value_or_throw(layout::simulate(schedule, {}));
  return simulation.peak_live[static_cast<std::size_t>(stage)];
}

/// Zeroes state on a device, whose fresh memory is undefined (the host's is zero): what lies
/// between tensors goes into checkpoints too, and those of equal runs are equal.
void clear_state(const optim::Optimizer& optimizer, const std::vector<optim::Segment>& buckets,
                 device::Kernels& kernels) {
  for (const auto& state : optimizer.states()) kernels.issue(device::Fill{state.values, 0.0F});
  if (const auto& all = optimizer.owner_states()) kernels.issue(device::Fill{all, 0.0F});
  for (const auto& bucket : buckets) {
    if (bucket.flat.size() > 0) kernels.issue(device::Fill{optimizer.master(bucket), 0.0F});
  }
}

}  // namespace

sharding::Sharding sharding_of(const EngineOptions& options) {
  return {options.model, options.sharding, chunks_of(options), options.numerics.dtype};
}

Engine::Parts::Parts(const EngineOptions& given, const comm::AxisGroups& their_groups,
                     device::Kernels& their_kernels, Memory& their_memory)
    : options(given),
      groups(their_groups),
      kernels(their_kernels),
      memory(their_memory),
      sharding(sharding_of(options)),
      stage(sharding.stage()),
      schedule(base::value_or_throw(schedule_of(options))),
      slots(activation_slots(options, schedule)),
      graphs(trains() ? options.memory.cuda_graphs : CudaGraphs::no, groups.on(Axis::tensor),
             kernels.device()),
      batches(options.schedule, options.model.dropout, graphs, slots, kernels.device(), memory),
      tensor_watch(kernels.device().is_host() ? kernels.device().stopwatch() : nullptr),
      context{options.model,
              kernels,
              graphs.tensor(),
              memory.of(Purpose::workspace),
              options.numerics.dtype,
              options.schedule.micro_batch,
              options.schedule.sequence_length,
              options.sharding.sequence_parallel,
              trains() ? options.memory.recompute : layers::Recompute::full,
              options.memory.loss_rows,
              options.numerics.seed,
              options.numerics.linear_forward} {
  context.tensor_watch = tensor_watch.get();
  make_parameters();
  make_chunks();
  if (options.memory.keep_logits == KeepLogits::yes && messages.back().is_last()) {
    logits =
        memory.of(Purpose::activations)
            .allocate(options.numerics.dtype, {context.rows(), chunks.back().local_vocabulary()});
  }
  if (trains()) {
    auto& arena = memory.of(Purpose::optimizer);
    auto updates = sharding.updates();
    const auto& rule = optim::traits(options.sharding.rule.kind);
    if (rule.has_owner_states) kernels.open_decompositions();
    const bool exchanges = rule.updates_matrices && groups.on(Axis::tensor).size() > 1;
    optimizer.emplace(
        options.sharding.rule, std::move(updates.segments), updates.sizes, flat_parameters, arena,
        optim::Peers{exchanges ? &part_exchange.emplace(groups.on(Axis::tensor)) : nullptr,
                     exchanges ? &groups.on(Axis::tensor) : &groups.on(Axis::data)});
    owned_buckets = std::move(updates.buckets);
    if (!kernels.device().is_host()) clear_state(*optimizer, owned_buckets, kernels);
    reducer.emplace(sharding, groups, kernels, memory.of(Purpose::communication));
    if (sharding.divides_updates() && groups.on(Axis::data).size() > 1) {
      gather.emplace(sharding, groups.on(Axis::data), kernels.device());
    }
    say_rules();
  }
  register_arenas(options.model, groups, memory, registrations);
  if (trains()) register_flat(groups, flat_parameters, flat_gradients, registrations);
  make_executor();
  context.progress = [this] {
    if (kernels.device().capturing()) return;
    pipeline().poll();
    if (reducer) reducer->poll();
    if (gather) gather->poll();
  };
  context.reads = [this](const model::Place& place) { wait_for_parameters(place); };
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

void Engine::Parts::make_executor() {
  executor.emplace(PipelineExecutor::Stage{chunks, messages, slots,
                                           groups.on(Axis::data).size() > 1, batches, graphs},
                   kernels);
  if (!trains() || memory.of(Purpose::batch).is_measuring()) return;
  const bool chosen =
      options.schedule.stage_layers.empty() && options.sharding.mesh.degree(Axis::pipeline) > 1;
  if (chosen) base::log::debug("engine", "{}", stage_layers(options).text());
  if (!graphs.wanted() || graphs.made()) return;
  base::log::info("engine", "numerics.cuda_graphs has no effect: {} records no work",
                  kernels.device().name());
}

GradientReducer& Engine::Parts::reduction() {
  TRIREME_EXPECT(reducer.has_value(), "only training reduces gradients");
  return *reducer;
}

optim::Optimizer& Engine::Parts::updates() {
  TRIREME_EXPECT(optimizer.has_value(), "only training has optimizer state");
  return *optimizer;
}

PipelineExecutor& Engine::Parts::pipeline() {
  TRIREME_EXPECT(executor.has_value(), "the executor is made last");
  return *executor;
}

void Engine::Parts::make_parameters() {
  const auto size = stage.flat().size;
  flat_parameters = memory.of(Purpose::parameters).allocate(options.numerics.dtype, {size});
  if (trains()) {
    flat_gradients = memory.of(Purpose::gradients).allocate(device::DType::f32, {size});
    std::int64_t pieces = 0;
    for (const auto& fused : stage.fused_parameters()) pieces += std::ssize(fused.pieces);
    hashes = memory.of(Purpose::gradients).allocate(device::DType::i32, {pieces, 2});
  }
  stage.bind(flat_parameters, flat_gradients);
  if (options.numerics.linear_forward == layers::LinearForward::e4m3 &&
      options.memory.weight_copies == layers::WeightCopies::kept) {
    context.weight_copies = &weight_copies.emplace(stage, memory.of(Purpose::parameters));
  }
}

/// Renews the copies of weights: parameters change between steps, and when they are loaded, so a
/// step or an evaluation uses no copy of the one before.
void Engine::Parts::renew_weight_copies() {
  if (!weight_copies) return;
  finish_gathers();
  weight_copies->renew(context);
}

void Engine::Parts::make_chunks() {
  const auto layers = chunks_of(options);
  const int virtual_stages = static_cast<int>(layers.size());
  const ChunkMessages::Shape shape{context.local_rows(), options.model.hidden_size,
                                   options.numerics.dtype};
  for (int chunk = 0; chunk < virtual_stages; ++chunk) {
    const auto index = static_cast<std::size_t>(chunk);
    const int held = slots[index];
    messages.emplace_back(groups.on(Axis::pipeline), layout::ChunkPlace{my_stage(), chunk}, shape,
                          ChunkMessages::Needs{virtual_stages, held, trains()},
                          memory.of(Purpose::communication));
    const layers::Chunk::Role role{layers[index], messages.back().is_first(),
                                   messages.back().is_last()};
    chunks.emplace_back(context, stage, role, held, memory.of(Purpose::activations),
                        memory.of(Purpose::parameters));
  }
}

/// Sum of the losses over all ranks; the last stage has its data-parallel part of it.
std::optional<double> Engine::Parts::take_tensor_seconds() const {
  return tensor_watch ? std::optional(tensor_watch->take()) : std::nullopt;
}

double Engine::Parts::whole_loss_sum(double local) const {
  double sum = local;
  ordered_sum(groups.on(Axis::data), {&sum, 1});
  ordered_sum(groups.on(Axis::pipeline), {&sum, 1});
  return sum;
}

Engine::Engine(const EngineOptions& options, const comm::AxisGroups& groups,
               device::Kernels& kernels, Memory& memory)
    : parts_(new Parts(options, groups, kernels, memory)) {}

Engine::~Engine() {
  // Order: gathers under way are of peers' parameters too, and work in memory of the device.
  parts_->gather.reset();
  device::leave(device());
}

void Engine::initialise() {
  const auto& optimizer = parts_->updates();
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
  parts_->updates().give_parameters(parts_->kernels, step);
  parts_->gather_parameters();
  parts_->finish_gathers();
}

TokenBuffers& Engine::batch(int index) {
  return parts_->batches.host(index);
}

ScheduleOutcome Engine::run_schedule() {
  auto& parts = *parts_;
  ScheduleOutcome outcome;
  parts.batches.upload();
  parts.renew_weight_copies();
  outcome.tokens = parts.batches.counted_tokens(parts.groups.on(Axis::data));
  const auto tokens = static_cast<double>(std::max<std::int64_t>(outcome.tokens, 1));
  auto& reduction = parts.reduction();
  reduction.begin_step(parts.flat_gradients);
  parts.pipeline().run(parts.actions(), static_cast<float>(1.0 / tokens),
                       [&](const model::Place& place) { reduction.completed(place); });
  outcome.bubble_seconds = parts.pipeline().take_waited_seconds();
  outcome.tensor_seconds = parts.take_tensor_seconds();
  if (parts.gather) outcome.parameters_seconds = parts.gather->take_waited_seconds();
  // Order: collectives of a group end in the order of their start. Otherwise the sum of losses
  // would wait for gradients, and that time would be attributed to no phase.
  reduction.wait_on_stream();
  std::array sums{parts.pipeline().loss_sum(), outcome.bubble_seconds};
  ordered_sum(parts.groups.on(Axis::data), sums);
  // The loss, and behind it the bubble of each stage.
  std::vector<double> all(1 + static_cast<std::size_t>(parts.schedule.stages), 0.0);
  all[0] = sums[0];
  all[1 + static_cast<std::size_t>(parts.my_stage())] =
      sums[1] / parts.groups.on(Axis::data).size();
  ordered_sum(parts.groups.on(Axis::pipeline), all);
  outcome.loss = all[0] / tokens;
  outcome.stage_bubble_seconds.assign(all.begin() + 1, all.end());
  return outcome;
}

ReduceOutcome Engine::reduce_gradients() {
  ReduceOutcome outcome;
  auto& reduction = parts_->reduction();
  reduction.finish();
  outcome.gradient_norm = reduction.global_norm();
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
  parts.updates().update(parts.kernels, parts.memory.of(Purpose::workspace), parts.flat_gradients,
                         static_cast<float>(step.learning_rate), scale, step.step);
  UpdateOutcome outcome;
  if (parts.part_exchange) outcome = parts.part_exchange->take_times();
  const auto begin = telemetry::SpanClock::now();
  parts.gather_parameters();
  outcome.parameters_seconds = seconds_since(begin);
  outcome.exposed_seconds += outcome.parameters_seconds;
  return outcome;
}

EvaluationOutcome Engine::evaluate(const std::function<void(int)>& seen) {
  auto& parts = *parts_;
  parts.batches.upload();
  parts.finish_gathers();
  parts.renew_weight_copies();
  parts.pipeline().run_forward_only(parts.actions(), seen);
  const auto loss_sum = parts.whole_loss_sum(parts.pipeline().loss_sum());
  // Discarded: the time of an evaluation is not a training step's.
  static_cast<void>(parts.pipeline().take_waited_seconds());
  static_cast<void>(parts.take_tensor_seconds());
  if (parts.gather) static_cast<void>(parts.gather->take_waited_seconds());
  return {loss_sum, parts.batches.counted_tokens(parts.groups.on(Axis::data))};
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

device::Device& Engine::device() const {
  return parts_->kernels.device();
}

}  // namespace trireme::engine
