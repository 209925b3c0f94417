// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/measure.hpp"

#include "trireme/engine/engine.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;
using device::Purpose;

namespace {

std::size_t bytes_of(const engine::MemoryUse& use, Purpose purpose) {
  return use[static_cast<std::size_t>(purpose)];
}

engine::EngineOptions eight_billion(int zero_level) {
  engine::EngineOptions options;
  options.model = llama3_8b();
  options.sharding.mesh = layout::Mesh::of(2, 8, 8);
  options.schedule.stage_layers = {16, 16};
  options.schedule.sequence_length = 8192;
  options.schedule.micro_batches = 16;
  options.numerics.dtype = device::DType::bf16;
  options.sharding.sequence_parallel = model::SequenceParallel::on;
  options.sharding.zero_level = zero_level;
  return options;
}

}  // namespace

TEST_CASE("128 ranks of an 8-billion-parameter model are measured without touching memory") {
  const auto use = engine::measure(eight_billion(1));
  // A sixteenth of the parameters, a little more for norms that every rank of tp has.
  const double share = 8'030'261'248.0 / 16;
  CHECK(static_cast<double>(bytes_of(use, Purpose::gradients)) == Approx(4 * share).epsilon(0.02));
  CHECK(static_cast<double>(bytes_of(use, Purpose::parameters)) == Approx(2 * share).epsilon(0.02));
  // Master and two moments, an eighth of them.
  CHECK(static_cast<double>(bytes_of(use, Purpose::optimizer)) ==
        Approx(12 * share / 8).epsilon(0.02));
  CHECK(bytes_of(use, Purpose::activations) > std::size_t{1} << 30);
}

TEST_CASE("ZeRO level 1 divides optimizer state and nothing else") {
  const auto whole = engine::measure(eight_billion(0));
  const auto divided = engine::measure(eight_billion(1));
  CHECK(bytes_of(whole, Purpose::optimizer) == 8 * bytes_of(divided, Purpose::optimizer));
  for (const auto purpose : {Purpose::parameters, Purpose::gradients, Purpose::activations,
                             Purpose::workspace, Purpose::batch}) {
    CHECK(bytes_of(whole, purpose) == bytes_of(divided, purpose));
  }
}

TEST_CASE("a kind of activation that is computed again frees what it takes, to the byte") {
  using layers::Activation;
  const auto options = eight_billion(1);
  const auto kept_with = [&](const layers::Recompute& recompute) {
    auto some = options;
    some.memory.recompute = recompute;
    return bytes_of(engine::measure(some), Purpose::activations);
  };
  const auto kept = kept_with({});
  // Two micro-batches on their way through the first of two stages with 16 layers each; bf16.
  const std::size_t rows = 8192;
  const std::size_t layers = std::size_t{2} * 16;
  const std::size_t hidden = 4096 / 8;  // rows are divided among 8 ranks
  const std::size_t norms = layers * 2 * rows * hidden * 2;
  const std::size_t activation = layers * rows * (14336 / 8) * 2;
  const std::size_t attention = layers * (rows * hidden * 2 + rows * (32 / 8) * 4);
  CHECK(kept - kept_with({Activation::norms}) == norms);
  CHECK(kept - kept_with({Activation::activation}) == activation);
  CHECK(kept - kept_with({Activation::attention}) == attention);
  CHECK(kept - kept_with({Activation::mlp}) == 3 * activation);
  CHECK(kept - kept_with({Activation::mlp, Activation::activation}) == 3 * activation);
  CHECK(kept - kept_with({Activation::norms, Activation::attention}) == norms + attention);
  CHECK(kept - kept_with(layers::Recompute{}.add(Activation::norms, 4)) == norms / 4);
  // About a third, as docs/configuration.md says.
  CHECK(static_cast<double>(norms + activation) / static_cast<double>(kept) ==
        Approx(0.33).margin(0.03));
}

TEST_CASE("a product that is computed again shares its gather with the weight's gradient") {
  using layers::Activation;
  auto options = eight_billion(1);
  const auto tensor_bytes = [&](const layers::Recompute& recompute) {
    options.memory.recompute = recompute;
    return engine::traffic_of(options).tensor;
  };
  const auto plain = tensor_bytes({});
  CHECK(tensor_bytes({Activation::norms, Activation::activation, Activation::attention}) == plain);
  CHECK(tensor_bytes({Activation::norms, Activation::mlp}) == plain);
  // Attention's sum over ranks comes once more, of the five that a layer has without the gathers
  // for weights.
  const auto whole = tensor_bytes({Activation::layer});
  CHECK(whole > plain);
  CHECK(whole - plain < plain / 8);
}

TEST_CASE("computing layers again trades activations for time") {
  auto options = eight_billion(1);
  const auto kept = bytes_of(engine::measure(options), Purpose::activations);
  options.memory.recompute = layers::Recompute{layers::Activation::attention};
  const auto selective = bytes_of(engine::measure(options), Purpose::activations);
  options.memory.recompute = layers::Recompute{layers::Activation::layer};
  const auto full = bytes_of(engine::measure(options), Purpose::activations);
  CHECK(selective < kept);
  CHECK(full < selective / 5);
}

TEST_CASE("rows of logits begin at even places, whatever the vocabulary") {
  auto options = eight_billion(1);
  options.sharding.mesh = layout::Mesh::of(1, 1, 1);
  options.schedule.stage_layers.clear();
  options.sharding.sequence_parallel = model::SequenceParallel::off;
  options.model.hidden_size = options.model.intermediate_size = 128;
  options.model.num_attention_heads = options.model.num_key_value_heads = 1;
  options.model.vocab_size = 50257;
  const auto odd = bytes_of(engine::measure(options), Purpose::workspace);
  options.model.vocab_size = 50304;
  const auto even = bytes_of(engine::measure(options), Purpose::workspace);
  CHECK(even == odd);
  options.memory.loss_rows = 8192;
  CHECK(bytes_of(engine::measure(options), Purpose::workspace) ==
        even + std::size_t{8192 - 1024} * (50304 * 2 + 4 * 4));
}

TEST_CASE("rows that sequence parallelism cannot share evenly are refused") {
  auto options = eight_billion(1);
  options.schedule.sequence_length = 8191;
  const auto status = engine::check(options);
  REQUIRE_FALSE(status.ok());
  CHECK(status.failure().text.find("parallel.sequence") != std::string::npos);
}

TEST_CASE("parts of different lengths are taken where GPUs compute") {
  auto options = eight_billion(1);
  options.sharding.rule.kind = optim::RuleKind::muon;
  options.sharding.zero_level = 1;
  options.sharding.assignment = ownership::Assignment::contiguous;
  CHECK(engine::check(options).ok());
  options.numerics.gpu_attention.emplace();
  CHECK(engine::check(options).ok());
}

TEST_CASE("shared matrices are refused where GPUs compute, and to rules that need one owner") {
  auto options = eight_billion(1);
  REQUIRE(options.sharding.mesh.degree(layout::Axis::tensor) > 1);
  options.sharding.rule.kind = optim::RuleKind::muon;
  options.sharding.assignment = ownership::Assignment::shared;
  const auto refusal = [](const engine::EngineOptions& given) {
    const auto status = engine::check(given);
    return status.ok() ? std::string{} : status.failure().text;
  };
  for (const int level : {0, 1}) {
    options.sharding.zero_level = level;
    CHECK(refusal(options).empty());
    auto soap = options;
    soap.sharding.rule.kind = optim::RuleKind::soap;
    CHECK(refusal(soap).find("optimizer.name = soap") != std::string::npos);
    auto on_gpus = options;
    on_gpus.numerics.gpu_attention.emplace();
    CHECK(refusal(on_gpus).find("numerics.backend = cuda") != std::string::npos);
  }
  // Data-parallel ranks alone share nothing at level 0.
  options.sharding.mesh = layout::Mesh::of(2, 8, 1);
  options.sharding.sequence_parallel = model::SequenceParallel::off;
  options.sharding.zero_level = 0;
  options.numerics.gpu_attention.emplace();
  CHECK(refusal(options).empty());
}

TEST_CASE("heads that no kernel of a GPU takes are refused where GPUs compute") {
  auto options = eight_billion(1);
  options.model.head_dim = 260;
  CHECK(engine::check(options).ok());
  options.numerics.gpu_attention.emplace();
  const auto status = engine::check(options);
  REQUIRE_FALSE(status.ok());
  CHECK(status.failure().code == base::ExitCode::usage);
  CHECK(status.failure().text.find("model.head_dim = 260") != std::string::npos);
  options.model.head_dim = 256;
  CHECK(engine::check(options).ok());
}

TEST_CASE("a schedule that splits backward keeps each activation as long as it is read") {
  auto options = eight_billion(1);
  options.sharding.mesh = layout::Mesh::of(4, 2, 8);
  options.schedule.stage_layers = {8, 8, 8, 8};
  const auto activations_on = [&](int stage, layout::ScheduleKind kind) {
    options.schedule.kind = kind;
    options.sharding.rank = base::Rank{stage * 16};
    return bytes_of(engine::measure(options), Purpose::activations);
  };
  // The second of four stages, without embedding and head: three micro-batches between forward and
  // the gradient of the input, four until weights' gradients, of which two wait for the latter.
  const std::size_t rows = 8192;
  const std::size_t hidden = 4096 / 8;
  const std::size_t qkv = (4096 + 2 * 1024) / 8;
  const std::size_t width = 14336 / 8;
  const std::size_t streams = 7 * hidden;  // between its layers
  const std::size_t statistics = 8 * (rows * 4 * 4 + 2 * rows / 8 * 4);
  const std::size_t for_inputs = rows * 2 * (8 * (qkv + hidden) + streams) + statistics;
  const std::size_t operands = rows * 2 * 8 * (2 * hidden + hidden + width + 2 * width);
  const std::size_t left = rows * 2 * (8 * (qkv + hidden) + streams);
  CHECK(activations_on(1, layout::ScheduleKind::zero_bubble_h1) ==
        3 * for_inputs + 4 * operands + 2 * left);
  CHECK(activations_on(1, layout::ScheduleKind::one_forward_one_backward) ==
        3 * (for_inputs + operands));
  // No stage takes much more than the first does with 1f1b.
  const auto first = activations_on(0, layout::ScheduleKind::one_forward_one_backward);
  for (int stage = 0; stage < 4; ++stage) {
    const auto bytes = activations_on(stage, layout::ScheduleKind::zero_bubble_h1);
    CAPTURE(stage, bytes, first);
    CHECK(static_cast<double>(bytes) < 1.06 * static_cast<double>(first));
  }
}
