// SPDX-License-Identifier: Apache-2.0
// Decoding with cached keys and values, against the whole sequence computed anew for each token.
#include "trireme/base/philox.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/inference/decoder.hpp"

#include "inference/replica_decoding.hpp"
#include "mpi/training/training.hpp"
#include "support/model_on_mesh.hpp"
#include "support/mpi/world.hpp"
#include "support/simulated_gpu/device.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

namespace trireme::testing {
namespace {

using inference::DecodedSequence;
using layout::Axis;

constexpr std::int64_t new_tokens = 7;
constexpr std::int64_t positions = 24;

model::ModelConfig sharp(model::Architecture architecture) {
  auto config = tiny(architecture);
  // Wide weights: the most likely token is so by far more than rounding.
  config.initializer_range = 0.3F;
  return config;
}

/// One rank, one sequence, all positions at once.
engine::EngineOptions whole_sequence(const model::ModelConfig& model) {
  engine::EngineOptions options;
  options.model = model;
  options.schedule.sequence_length = positions;
  options.memory.keep_logits = engine::KeepLogits::yes;
  options.numerics.seed = 5;
  return options;
}

/// The model on one rank: the oracle, and where all others take their parameters from.
class Oracle {
 public:
  Oracle(const model::ModelConfig& model, device::Kernels& kernels)
      : options_(whole_sequence(model)),
        memory_(engine::Memory::host(engine::measure(options_))),
        engine_(options_, groups_.views(), kernels, memory_) {
    engine_.initialise();
    for (const auto& part : engine_.parameter_parts()) whole_.emplace(part.name, part);
  }

  /// logits [vocabulary] after the last of the ids.
  std::vector<float> logits_after(const std::vector<std::int32_t>& ids) {
    auto& batch = engine_.batch(0);
    std::fill_n(batch.tokens.i32(), positions, 0);
    std::fill_n(batch.targets.i32(), positions, -1);
    std::copy(ids.begin(), ids.end(), batch.tokens.i32());
    engine_.evaluate();
    const auto logits = engine_.logits();
    const auto* row = logits.f32() + static_cast<std::int64_t>(ids.size() - 1) * logits.dim(1);
    return {row, row + logits.dim(1)};
  }

  std::vector<std::int32_t> greedy(std::vector<std::int32_t> ids, std::int64_t more = new_tokens) {
    for (std::int64_t count = 0; count < more; ++count) {
      const auto logits = logits_after(ids);
      ids.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) -
                                              logits.begin()));
    }
    return ids;
  }

  void copy_to(const engine::ParameterPart& part,
               device::Device& device = device::host_device()) const {
    const auto& from = whole_.at(part.name).values;
    device::HostMirror mirror(device);
    const auto to = mirror.of(part.values);
    for (const auto& run : layout::copy_runs(layout::whole(part.shape), part.box)) {
      std::copy_n(from.f32() + run.source, run.count, to.f32() + run.destination);
    }
    mirror.store();
  }

 private:
  comm::OwnedAxisGroups groups_ = local_groups();
  engine::EngineOptions options_;
  engine::Memory memory_;
  engine::Engine engine_;
  std::map<std::string, engine::ParameterPart> whole_;
};

std::vector<DecodedSequence> prompts_of(const std::vector<std::size_t>& lengths,
                                        std::int64_t vocabulary) {
  std::vector<DecodedSequence> prompts;
  for (const auto length : lengths) {
    DecodedSequence prompt;
    prompt.index = static_cast<std::int64_t>(prompts.size());
    for (std::size_t place = 0; place < length; ++place) {
      const auto bits = base::philox(3, length, place)[0];
      prompt.ids.push_back(
          static_cast<std::int32_t>(bits % static_cast<std::uint32_t>(vocabulary)));
    }
    prompt.prompt_size = length;
    prompts.push_back(prompt);
  }
  return prompts;
}

std::vector<DecodedSequence> made_up_prompts(std::int64_t vocabulary) {
  return prompts_of({3, 1, 11, 6, 16}, vocabulary);
}

inference::DecoderOptions decoder_options(const model::ModelConfig& model,
                                          const layout::Mesh& mesh) {
  inference::DecoderOptions options;
  options.model = model;
  options.mesh = mesh;
  options.rank = mpi().world_rank();
  options.capacity = {2, positions};
  // Fewer than the longest prompt has tokens: it is read in several steps.
  options.rows_at_once = 5;
  return options;
}

void check_memory(const inference::DecoderOptions& options, engine::Memory& memory) {
  const auto measured = inference::measure(options);
  for (std::size_t index = 0; index < measured.size(); ++index) {
    CAPTURE(device::name(engine::all_purposes[index]));
    CHECK(measured[index] == memory.peak_bytes()[index]);
  }
}

void check_layout(const model::ModelConfig& model, const layout::Mesh& mesh, Oracle& oracle,
                  device::Kernels& kernels) {
  const auto groups = staged(mpi_groups(mesh), kernels.device());
  const auto options = decoder_options(model, mesh);
  auto memory = engine::Memory::on(kernels.device(), inference::measure(options));
  inference::Decoder decoder(options, groups.views(), kernels, memory);
  for (const auto& part : decoder.parameter_parts()) oracle.copy_to(part, kernels.device());
  const inference::DecodingLimits limits{2, options.rows_at_once, new_tokens, model.vocab_size, {}};
  inference::ReplicaDecoding decoding(decoder, limits, {}, made_up_prompts(model.vocab_size),
                                      [](const DecodedSequence&, std::int32_t) {});
  decoding.run();
  auto prompts = made_up_prompts(model.vocab_size);
  for (std::size_t index = 0; index < prompts.size(); ++index) {
    CAPTURE(index, mesh.text());
    CHECK(decoding.sequences()[index].ids == oracle.greedy(prompts[index].ids));
    CHECK(decoding.sequences()[index].ending == inference::Ending::length);
  }
  check_memory(options, memory);
}

/// Some prompts, of some lengths, with some limits, as a command line may ask for them.
struct Question {
  std::vector<std::size_t> lengths;
  std::int64_t batch = 1;
  std::int64_t max_tokens = 1;
};

Question random_question(std::uint64_t number) {
  const auto draw = base::philox(29, number, 0);
  Question question;
  question.max_tokens = 1 + draw[0] % static_cast<std::uint32_t>(new_tokens);
  question.batch = 1 + draw[1] % 6;
  for (std::uint64_t index = 0; index < 1 + draw[2] % 7; ++index) {
    const auto longest = static_cast<std::size_t>(positions - question.max_tokens);
    question.lengths.push_back(1 + base::philox(31, number, index)[0] % longest);
  }
  return question;
}

/// Sized as the command sizes it, every prompt is answered as if it were alone.
void check_question(const Question& question, const model::ModelConfig& model,
                    const layout::Mesh& mesh, Oracle& oracle, device::Kernels& kernels) {
  const auto groups = mpi_groups(mesh);
  const auto prompts = prompts_of(question.lengths, model.vocab_size);
  auto options = decoder_options(model, mesh);
  inference::fit_to_prompts(options, prompts, question.batch, question.max_tokens);
  REQUIRE(inference::check(options).ok());
  auto memory = engine::Memory::host(inference::measure(options));
  inference::Decoder decoder(options, groups.views(), kernels, memory);
  for (const auto& part : decoder.parameter_parts()) oracle.copy_to(part);
  const inference::DecodingLimits limits{
      options.capacity.slots, options.rows_at_once, question.max_tokens, model.vocab_size, {}};
  inference::ReplicaDecoding decoding(decoder, limits, {}, prompts,
                                      [](const DecodedSequence&, std::int32_t) {});
  decoding.run();
  for (std::size_t index = 0; index < prompts.size(); ++index) {
    CAPTURE(index, prompts[index].prompt_size);
    CHECK(decoding.sequences()[index].ids ==
          oracle.greedy(prompts[index].ids, question.max_tokens));
  }
}

/// All meshes of the ranks at hand that can hold the model.
std::vector<layout::Mesh> meshes_for(const model::ModelConfig& model) {
  const int world = mpi().world_size();
  std::vector<layout::Mesh> meshes;
  for (const int tensor : {1, 2, 4}) {
    for (const int pipeline : {1, 2, 4}) {
      if (world % (tensor * pipeline) != 0) continue;
      const auto mesh = layout::Mesh::of(pipeline, world / (tensor * pipeline), tensor);
      if (check_on(model, mesh).ok()) meshes.push_back(mesh);
    }
  }
  return meshes;
}

}  // namespace

TEST_CASE("greedy decoding with a cache gives what whole sequences give, on every layout") {
  const auto architecture =
      GENERATE(model::Architecture::gpt2, model::Architecture::llama, model::Architecture::qwen3);
  CAPTURE(model::name(architecture));
  const auto model = sharp(architecture);
  const auto kernels = device::make_cpu_kernels(1);
  Oracle oracle(model, *kernels);
  for (const auto& mesh : meshes_for(model)) check_layout(model, mesh, oracle, *kernels);
}

TEST_CASE("any number of prompts of any lengths is answered as each of them alone") {
  const auto architecture =
      GENERATE(model::Architecture::gpt2, model::Architecture::llama, model::Architecture::qwen3);
  const auto model = sharp(architecture);
  const auto kernels = device::make_cpu_kernels(1);
  Oracle oracle(model, *kernels);
  for (const auto& mesh : meshes_for(model)) {
    for (std::uint64_t number = 0; number < 12; ++number) {
      const auto question = random_question(number);
      CAPTURE(model::name(architecture), mesh.text(), number, question.lengths, question.batch,
              question.max_tokens);
      check_question(question, model, mesh, oracle, *kernels);
    }
  }
}

TEST_CASE("decoding on a device whose memory the host cannot reach gives what the host gives") {
  const auto model = sharp(model::Architecture::llama);
  const auto kernels = device::make_cpu_kernels(1);
  Oracle oracle(model, *kernels);
  for (const auto& mesh : meshes_for(model)) {
    SimulatedKernels simulated(device::make_cpu_kernels(1));
    check_layout(model, mesh, oracle, simulated);
  }
}

TEST_CASE("logits of a step are those of the whole sequence") {
  const auto model = sharp(model::Architecture::llama);
  const auto kernels = device::make_cpu_kernels(1);
  Oracle oracle(model, *kernels);
  for (const auto& mesh : meshes_for(model)) {
    const auto groups = mpi_groups(mesh);
    const auto options = decoder_options(model, mesh);
    auto memory = engine::Memory::host(inference::measure(options));
    inference::Decoder decoder(options, groups.views(), *kernels, memory);
    for (const auto& part : decoder.parameter_parts()) oracle.copy_to(part);
    const std::vector<std::int32_t> ids{8, 1, 90, 33, 5};
    const std::vector<layers::SequencePart> parts{{1, 0, 0, 5}};
    const auto logits = decoder.run(parts, ids);
    CHECK(static_cast<bool>(logits) == decoder.is_last_stage());
    if (!logits) continue;
    const auto expected = oracle.logits_after(ids);
    REQUIRE(logits.dim(2) == static_cast<std::int64_t>(expected.size()));
    float scale = 0;
    for (const auto value : expected) scale = std::max(scale, std::abs(value));
    for (std::size_t token = 0; token < expected.size(); ++token) {
      CAPTURE(token);
      CHECK(logits.f32()[token] == Approx(expected[token]).margin(2e-6 * scale));
    }
  }
}

TEST_CASE("a stop token ends a sequence and gives its slot to the next") {
  const auto model = sharp(model::Architecture::gpt2);
  const auto kernels = device::make_cpu_kernels(1);
  Oracle oracle(model, *kernels);
  const auto mesh = layout::Mesh::of(1, mpi().world_size(), 1);
  const auto groups = mpi_groups(mesh);
  const auto options = decoder_options(model, mesh);
  auto memory = engine::Memory::host(inference::measure(options));
  inference::Decoder decoder(options, groups.views(), *kernels, memory);
  for (const auto& part : decoder.parameter_parts()) oracle.copy_to(part);
  auto prompts = made_up_prompts(model.vocab_size);
  const auto first = oracle.greedy(prompts[0].ids);
  const auto stop = first[prompts[0].prompt_size + 2];
  const inference::DecodingLimits limits{2, 5, new_tokens, model.vocab_size, {stop}};
  std::size_t chosen = 0;
  inference::ReplicaDecoding decoding(decoder, limits, {}, prompts,
                                      [&](const DecodedSequence&, std::int32_t token) {
                                        CHECK(token != stop);
                                        ++chosen;
                                      });
  decoding.run();
  std::size_t made = 0;
  for (std::size_t index = 0; index < prompts.size(); ++index) {
    auto expected = oracle.greedy(prompts[index].ids);
    const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(prompts[index].prompt_size);
    const auto end = std::find(begin, expected.end(), stop);
    const bool stopped = end != expected.end();
    expected.erase(end, expected.end());
    CAPTURE(index);
    CHECK(decoding.sequences()[index].ids == expected);
    CHECK(decoding.sequences()[index].ending ==
          (stopped ? inference::Ending::stop_token : inference::Ending::length));
    made += expected.size() - prompts[index].prompt_size;
  }
  CHECK(decoding.sequences()[0].ending == inference::Ending::stop_token);
  CHECK(chosen == made);
}

}  // namespace trireme::testing
