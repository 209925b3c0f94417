// SPDX-License-Identifier: Apache-2.0
#include "pipeline.hpp"

#include "trireme/telemetry/spans.hpp"

#include <algorithm>
#include <iterator>

namespace trireme::engine {

using layout::Action;
using layout::ActionKind;

namespace {

telemetry::SpanPlace place_of(const Action& action) {
  return {.micro_batch = action.micro_batch, .chunk = action.virtual_stage};
}

std::size_t chunk_of(const Action& action) {
  return static_cast<std::size_t>(action.virtual_stage);
}

/// Whether a message may have to arrive before the action.
bool receives(const Action& action) {
  return action.kind != ActionKind::backward_weight;
}

}  // namespace

void PipelineExecutor::expect(const Action& action) {
  auto& messages = stage_.messages[chunk_of(action)];
  switch (action.kind) {
    case ActionKind::forward:
      messages.expect_input(action.micro_batch);
      break;
    case ActionKind::backward:
    case ActionKind::backward_input:
      messages.expect_output_gradient(action.micro_batch);
      break;
    case ActionKind::backward_weight:
      break;
  }
}

void PipelineExecutor::expect_from(const std::vector<Action>& actions, std::size_t index) {
  expect(actions[index]);
  const auto next = std::find_if(actions.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                                 actions.end(), receives);
  if (next != actions.end()) expect(*next);
}

void PipelineExecutor::poll() {
  for (auto& messages : stage_.messages) messages.poll();
}

layers::Chunk::Places PipelineExecutor::places_of(const Action& action) const {
  const auto& buffers = stage_.buffers[chunk_of(action)];
  return {.slot = action.micro_batch % buffers.activations,
          .operands = action.micro_batch % buffers.operands,
          .left = buffers.left == 0 ? 0 : action.micro_batch % buffers.left};
}

int PipelineExecutor::part_of(const Action& action) const {
  // Forward reads nothing of what another place of `left` holds.
  const bool forward = action.kind == ActionKind::forward;
  const auto places = places_of(action);
  const int left = forward ? 0 : places.left;
  const int kept = left * stage_.buffers[chunk_of(action)].operands + places.operands;
  const int chunks = static_cast<int>(stage_.chunks.size());
  const int weights = action.kind == ActionKind::backward_weight ? 1 : 0;
  const int backward = 1 + 2 * weights + (tells(action) ? 1 : 0);
  return 5 * (kept * chunks + action.virtual_stage) + (forward ? 0 : backward);
}

PipelineExecutor::Completed PipelineExecutor::teller_of(const Action& action) {
  if (!tells(action)) return [](const model::Place&) {};
  // Reductions begin between layers: where these are captured, between two graphs.
  return [this](const model::Place& place) {
    stage_.graphs.outside([this, place] {
      stage_.completed(place);
      if (stage_.graphs.made()) poll();
    });
  };
}

template <typename Body>
void PipelineExecutor::run_part(CudaGraphCache::Key key, const layers::MicroBatch& batch,
                                const Body& body) {
  key.addresses.push_back(batch.tokens.raw());
  stage_.graphs.run(key, body);
  // Poll first: a graph makes no progress of messages under way.
  if (stage_.graphs.made()) poll();
}

void PipelineExecutor::forward(const Action& action, const layers::MicroBatch& batch) {
  const telemetry::SpanScope span(telemetry::SpanKind::forward, place_of(action));
  const auto chunk = chunk_of(action);
  auto& messages = stage_.messages[chunk];
  const auto input = messages.input(action.micro_batch, *waiting_);
  const auto output = messages.output_buffer(action.micro_batch);
  const auto places = places_of(action);
  const auto given =
      stage_.batches.load_static_input(chunk, static_cast<std::size_t>(places.slot), batch);
  run_part({part_of(action), {input.raw(), output.raw()}}, given,
           [&] { stage_.chunks[chunk].forward(given, places, input, output); });
  messages.send_output(action.micro_batch);
  if (messages.is_last()) kernels_.start_sum(stage_.chunks[chunk].losses());
}

void PipelineExecutor::backward(const Action& action, const layers::MicroBatch& batch) {
  const telemetry::SpanScope span(telemetry::SpanKind::backward, place_of(action));
  const auto chunk = chunk_of(action);
  auto& messages = stage_.messages[chunk];
  const auto d_output = messages.output_gradient(action.micro_batch, *waiting_);
  const auto d_input = messages.input_gradient_buffer(action.micro_batch);
  const auto places = places_of(action);
  const auto input = messages.kept_input(action.micro_batch);
  const auto given =
      stage_.batches.static_input(chunk, static_cast<std::size_t>(places.slot), batch);
  run_part({part_of(action), {input.raw(), d_output.raw(), d_input.raw()}}, given, [&] {
    auto& layers = stage_.chunks[chunk];
    if (action.kind == ActionKind::backward_input) {
      layers.backward_input(given, places, input, d_output, d_input);
    } else {
      layers.backward(given, places, input, d_output, d_input, teller_of(action));
    }
  });
  messages.send_input_gradient(action.micro_batch);
}

void PipelineExecutor::backward_weight(const Action& action, const layers::MicroBatch& batch) {
  const telemetry::SpanScope span(telemetry::SpanKind::backward, place_of(action));
  const auto chunk = chunk_of(action);
  const auto d_output = stage_.messages[chunk].kept_output_gradient(action.micro_batch);
  const auto places = places_of(action);
  const auto given =
      stage_.batches.static_input(chunk, static_cast<std::size_t>(places.slot), batch);
  run_part({part_of(action), {d_output.raw()}}, given,
           [&] { stage_.chunks[chunk].backward_weight(places, d_output, teller_of(action)); });
}

void PipelineExecutor::run(const std::vector<Action>& actions) {
  const telemetry::SpanScope span(telemetry::SpanKind::forward_backward);
  for (std::size_t index = 0; index < actions.size(); ++index) {
    const auto& action = actions[index];
    expect_from(actions, index);
    const auto batch = stage_.batches.training(action.micro_batch);
    switch (action.kind) {
      case ActionKind::forward:
        forward(action, batch);
        break;
      case ActionKind::backward:
      case ActionKind::backward_input:
        backward(action, batch);
        break;
      case ActionKind::backward_weight:
        backward_weight(action, batch);
        break;
    }
  }
  for (auto& messages : stage_.messages) messages.finish();
}

ExactSum PipelineExecutor::loss_sum() {
  ExactSum sum;
  for (const double part : kernels_.finish_sums()) sum.add(part);
  return sum;
}

void PipelineExecutor::run_forward_only(const std::vector<Action>& actions,
                                        const std::function<void(int)>& seen) {
  std::vector<Action> forwards;
  std::copy_if(actions.begin(), actions.end(), std::back_inserter(forwards),
               [](const Action& action) { return action.kind == ActionKind::forward; });
  for (std::size_t index = 0; index < forwards.size(); ++index) {
    const auto& action = forwards[index];
    expect_from(forwards, index);
    const auto chunk = chunk_of(action);
    auto& messages = stage_.messages[chunk];
    const auto input = messages.input(action.micro_batch, *waiting_);
    const auto output = messages.output_buffer(action.micro_batch);
    stage_.chunks[chunk].forward_only(stage_.batches.evaluation(action.micro_batch), input, output);
    messages.send_output(action.micro_batch);
    if (!messages.is_last()) continue;
    kernels_.start_sum(stage_.chunks[chunk].losses());
    if (seen) seen(action.micro_batch);
  }
  for (auto& messages : stage_.messages) messages.finish();
}

}  // namespace trireme::engine
