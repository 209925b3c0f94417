#include "pipeline.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>
#include <iterator>

namespace trireme::engine {

using layout::Action;
using layout::ActionKind;

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

void PipelineExecutor::forward(const Action& action, const model::MicroBatch& batch) {
  const auto chunk = static_cast<std::size_t>(action.virtual_stage);
  auto& messages = stage_.messages[chunk];
  const auto input = messages.input(action.micro_batch, *waiting_);
  const auto output = messages.output_buffer(action.micro_batch);
  stage_.chunks[chunk].forward(batch, action.micro_batch % stage_.slots[chunk], input, output);
  messages.send_output(action.micro_batch);
  if (messages.is_last()) kernels_.start_sum(stage_.chunks[chunk].losses());
}

void PipelineExecutor::backward(const Action& action, const model::MicroBatch& batch, bool last,
                                const Completed& completed) {
  const auto chunk = static_cast<std::size_t>(action.virtual_stage);
  auto& messages = stage_.messages[chunk];
  const auto d_output = messages.output_gradient(action.micro_batch, *waiting_);
  const auto d_input = messages.input_gradient_buffer(action.micro_batch);
  stage_.chunks[chunk].backward(batch, action.micro_batch % stage_.slots[chunk],
                                messages.kept_input(action.micro_batch), d_output, d_input,
                                [&](const model::Place& place) {
                                  if (last) completed(place);
                                });
  messages.send_input_gradient(action.micro_batch);
}

void PipelineExecutor::run(const std::vector<Action>& actions, int micro_batches,
                           const Batches& batches, const Completed& completed) {
  for (std::size_t index = 0; index < actions.size(); ++index) {
    const auto& action = actions[index];
    expect(action);
    if (index + 1 < actions.size()) expect(actions[index + 1]);
    const auto batch = batches(action.micro_batch);
    switch (action.kind) {
      case ActionKind::forward:
        forward(action, batch);
        break;
      case ActionKind::backward:
        backward(action, batch, action.micro_batch + 1 == micro_batches, completed);
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

void PipelineExecutor::run_forward_only(const std::vector<Action>& actions, const Batches& batches,
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
    stage_.chunks[chunk].forward_only(batches(action.micro_batch), input, output);
    messages.send_output(action.micro_batch);
    if (!messages.is_last()) continue;
    kernels_.start_sum(stage_.chunks[chunk].losses());
    if (seen) seen(action.micro_batch);
  }
  for (auto& messages : stage_.messages) messages.finish();
}

}  // namespace trireme::engine
