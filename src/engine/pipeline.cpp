// SPDX-License-Identifier: Apache-2.0
#include "pipeline.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/telemetry/spans.hpp"

#include <algorithm>
#include <iterator>

namespace trireme::engine {

using layout::Action;
using layout::ActionKind;

namespace {

int forward_part(std::size_t chunk) {
  return static_cast<int>(2 * chunk);
}
int backward_part(std::size_t chunk) {
  return static_cast<int>(2 * chunk + 1);
}

telemetry::SpanPlace place_of(const Action& action) {
  return {.micro_batch = action.micro_batch, .chunk = action.virtual_stage};
}

}  // namespace

void PipelineExecutor::expect(const Action& action) {
  auto& messages = stage_.messages[static_cast<std::size_t>(action.virtual_stage)];
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

void PipelineExecutor::poll() {
  for (auto& messages : stage_.messages) messages.poll();
}

std::size_t PipelineExecutor::slot_of(const Action& action) const {
  const auto chunk = static_cast<std::size_t>(action.virtual_stage);
  return static_cast<std::size_t>(action.micro_batch % stage_.buffers[chunk].activations);
}

template <typename Body>
void PipelineExecutor::run_part(CudaGraphCache::Key key, const layers::MicroBatch& batch,
                                const Body& body) {
  key.addresses.push_back(batch.tokens.raw());
  key.number = batch.loss_scale;
  stage_.graphs.run(key, body);
  // Poll first: a graph makes no progress of messages under way.
  if (stage_.graphs.made()) poll();
}

void PipelineExecutor::forward(const Action& action, const layers::MicroBatch& batch) {
  const telemetry::SpanScope span(telemetry::SpanKind::forward, place_of(action));
  const auto chunk = static_cast<std::size_t>(action.virtual_stage);
  auto& messages = stage_.messages[chunk];
  const auto input = messages.input(action.micro_batch, *waiting_);
  const auto output = messages.output_buffer(action.micro_batch);
  const auto slot = slot_of(action);
  const auto given = stage_.batches.load_static_input(chunk, slot, batch);
  run_part({forward_part(chunk), {input.raw(), output.raw()}}, given,
           [&] { stage_.chunks[chunk].forward(given, static_cast<int>(slot), input, output); });
  messages.send_output(action.micro_batch);
  if (messages.is_last()) kernels_.start_sum(stage_.chunks[chunk].losses());
}

void PipelineExecutor::backward(const Action& action, const layers::MicroBatch& batch, bool last,
                                const Completed& completed) {
  const telemetry::SpanScope span(telemetry::SpanKind::backward, place_of(action));
  const auto chunk = static_cast<std::size_t>(action.virtual_stage);
  auto& messages = stage_.messages[chunk];
  const auto d_output = messages.output_gradient(action.micro_batch, *waiting_);
  const auto d_input = messages.input_gradient_buffer(action.micro_batch);
  const auto slot = slot_of(action);
  const auto input = messages.kept_input(action.micro_batch);
  const auto given = stage_.batches.static_input(chunk, slot, batch);
  const bool tells = last && stage_.tells_completed;
  const auto body = [&] {
    stage_.chunks[chunk].backward(given, static_cast<int>(slot), input, d_output, d_input,
                                  [&](const model::Place& place) {
                                    if (tells) completed(place);
                                  });
  };
  if (tells) {
    // Reductions begin between the layers of this body.
    body();
  } else {
    run_part({backward_part(chunk), {input.raw(), d_output.raw(), d_input.raw()}}, given, body);
  }
  messages.send_input_gradient(action.micro_batch);
}

void PipelineExecutor::run(const std::vector<Action>& actions, float loss_scale,
                           const Completed& completed) {
  const telemetry::SpanScope span(telemetry::SpanKind::forward_backward);
  for (std::size_t index = 0; index < actions.size(); ++index) {
    const auto& action = actions[index];
    expect(action);
    if (index + 1 < actions.size()) expect(actions[index + 1]);
    const auto batch = stage_.batches.training(action.micro_batch, loss_scale);
    switch (action.kind) {
      case ActionKind::forward:
        forward(action, batch);
        break;
      case ActionKind::backward:
        backward(action, batch, action.micro_batch + 1 == stage_.batches.count(), completed);
        break;
      case ActionKind::backward_input:
      case ActionKind::backward_weight:
        TRIREME_EXPECT(false, "schedules that split backward have no executor yet");
    }
  }
  for (auto& messages : stage_.messages) messages.finish();
}

double PipelineExecutor::loss_sum() {
  double sum = 0;
  for (const double part : kernels_.finish_sums()) sum += part;
  return sum;
}

void PipelineExecutor::run_forward_only(const std::vector<Action>& actions,
                                        const std::function<void(int)>& seen) {
  std::vector<Action> forwards;
  std::copy_if(actions.begin(), actions.end(), std::back_inserter(forwards),
               [](const Action& action) { return action.kind == ActionKind::forward; });
  for (std::size_t index = 0; index < forwards.size(); ++index) {
    const auto& action = forwards[index];
    expect(action);
    if (index + 1 < forwards.size()) expect(forwards[index + 1]);
    const auto chunk = static_cast<std::size_t>(action.virtual_stage);
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
