// SPDX-License-Identifier: Apache-2.0
// One verdict on an arrangement of ranks, whoever is asked: the Slurm plugin, the configuration,
// the engine and the plan.
#include "trireme/layout/parallel_rules.hpp"

#include "trireme/base/format.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/launch/validation.hpp"
#include "trireme/plan/memory_plan.hpp"

#include <catch2/catch.hpp>

#include <numeric>
#include <random>

using namespace trireme;
using base::format;

namespace {

struct Request {
  int world = 1;
  int tensor = 1;
  int pipeline = 1;
  /// 0: not given.
  int data = 0;
  bool sequence = false;
  std::string schedule = "1f1b";
  int virtual_stages = 1;
  std::vector<int> stage_layers;
  int layers = 1;
  int heads = 1;
  int kv_heads = 1;
  int vocabulary = 64;
  int intermediate = 32;
  int micro_batch = 1;
  int global_batch = 1;
  int sequence_length = 8;
  int zero_level = 0;

  std::vector<std::string> settings() const {
    std::vector<std::string> all{format("parallel.tensor={}", tensor),
                                 format("parallel.pipeline={}", pipeline),
                                 format("parallel.sequence={}", sequence),
                                 format("parallel.schedule={}", schedule),
                                 format("parallel.virtual_stages={}", virtual_stages),
                                 format("parallel.stage_layers={}", base::join(stage_layers, ",")),
                                 format("parallel.zero_level={}", zero_level),
                                 "model.architecture=llama",
                                 "model.head_dim=2",
                                 "model.hidden_size=8",
                                 format("model.num_hidden_layers={}", layers),
                                 format("model.num_attention_heads={}", heads),
                                 format("model.num_key_value_heads={}", kv_heads),
                                 format("model.vocab_size={}", vocabulary),
                                 format("model.intermediate_size={}", intermediate),
                                 format("train.micro_batch={}", micro_batch),
                                 format("train.global_batch={}", global_batch),
                                 format("train.sequence_length={}", sequence_length)};
    if (data > 0) all.push_back(format("parallel.data={}", data));
    return all;
  }
  std::string text() const { return format("{} ranks: {}", world, base::join(settings(), " ")); }
};

/// Small numbers, of which some fit one another.
Request draw(std::mt19937& random) {
  const auto one_of = [&](const std::vector<int>& choices) {
    return choices[random() % choices.size()];
  };
  Request request;
  request.tensor = one_of({1, 1, 2, 2, 3, 4});
  request.pipeline = one_of({1, 1, 2, 2, 3, 4});
  const int data = one_of({1, 1, 2, 3});
  request.data = one_of({0, 0, data, data, data + 1});
  request.world = request.tensor * request.pipeline * data;
  if (one_of({0, 0, 0, 0, 0, 0, 1}) == 1) ++request.world;
  request.sequence = one_of({0, 0, 1}) == 1;
  const int schedule = one_of({0, 0, 1, 2, 2});
  request.schedule = schedule == 0 ? "1f1b" : schedule == 1 ? "gpipe" : "interleaved";
  request.virtual_stages = schedule == 2 ? one_of({1, 2, 2, 2, 3}) : one_of({1, 1, 1, 1, 1, 2});
  request.layers = one_of({2, 4, 6, 8, 12, 12});
  request.heads = one_of({4, 6, 12, 12});
  request.kv_heads = one_of({1, request.heads, request.heads, 2});
  request.vocabulary = one_of({64, 64, 64, 64, 64, 3});
  request.intermediate = one_of({32, 32, 32, 32, 32, 2});
  request.micro_batch = one_of({1, 1, 1, 2});
  request.global_batch = one_of({12, 12, 12, 24, 6, 5});
  request.sequence_length = one_of({12, 12, 24, 7});
  request.zero_level = one_of({0, 1});
  const int pieces = request.pipeline * request.virtual_stages;
  if (one_of({0, 0, 0, 1}) == 1) {
    request.stage_layers.assign(static_cast<std::size_t>(pieces), request.layers / pieces);
    request.stage_layers.back() += request.layers % pieces;
    const int change = one_of({0, 0, 0, 1, 2});
    if (change == 1) request.stage_layers.push_back(1);
    if (change == 2) ++request.stage_layers.front();
  }
  return request;
}

/// The rules once more, in other words than the code's: nothing here is shared with it.
bool is_legal(const Request& r) {
  const int others = r.tensor * r.pipeline;
  if (r.world % others != 0 || (r.data > 0 && r.data != r.world / others)) return false;
  const int replicas = r.world / others;
  if (r.heads % r.tensor != 0 || std::gcd(r.kv_heads, r.tensor) != std::min(r.kv_heads, r.tensor)) {
    return false;
  }
  if (r.tensor > r.vocabulary || r.tensor > r.intermediate) return false;
  const bool interleaved = r.schedule == "interleaved";
  if (interleaved != (r.virtual_stages > 1) || (interleaved && r.pipeline == 1)) return false;
  const int pieces = r.pipeline * r.virtual_stages;
  if (r.stage_layers.empty()) {
    if (pieces > r.layers) return false;
  } else {
    if (static_cast<int>(r.stage_layers.size()) != pieces) return false;
    if (std::accumulate(r.stage_layers.begin(), r.stage_layers.end(), 0) != r.layers) return false;
    for (std::size_t at = 1; at + 1 < r.stage_layers.size(); ++at) {
      if (r.stage_layers[at] == 0) return false;
    }
  }
  int left = r.global_batch;
  for (const int part : {r.micro_batch, replicas}) {
    if (left % part != 0) return false;
    left /= part;
  }
  if (interleaved && left % r.pipeline != 0) return false;
  return !r.sequence || r.micro_batch * r.sequence_length % r.tensor == 0;
}

bool plugin_takes(const Request& request) {
  launch::Contract contract;
  const auto put = [&](const char* name, const std::string& text) {
    const auto* const option = launch::find_option(name);
    contract.put(
        {option, base::value_or_throw(launch::parse_value(*option, text, name)), "sbatch --x"});
  };
  put("tensor-parallel", format("{}", request.tensor));
  put("pipeline-parallel", format("{}", request.pipeline));
  put("zero-level", format("{}", request.zero_level));
  put("micro-batch", format("{}", request.micro_batch));
  if (request.data > 0) put("data-parallel", format("{}", request.data));
  for (const auto& setting : request.settings()) put("trireme-set", setting);
  const std::vector<std::string> words{format("-n{}", request.world)};
  const auto resources = launch::read_resource_request(launch::Command::sbatch, {}, {}, words);
  return launch::validate(contract, resources).empty();
}

bool engine_takes(const config::Config& config, const model::ModelConfig& model, int world) {
  const auto mesh = engine::mesh_from(config, model, world);
  return mesh.ok() && engine::options_from(config, model, *mesh, base::Rank{0}).ok();
}

/// The engine asked without a configuration.
bool engine_checks(const Request& request, const model::ModelConfig& model) {
  const int data = request.world / (request.tensor * request.pipeline);
  if (data * request.tensor * request.pipeline != request.world) return false;
  engine::EngineOptions options;
  options.model = model;
  options.sharding.mesh = layout::Mesh::of(request.pipeline, data, request.tensor);
  options.schedule.kind = base::value_or_throw(layout::schedule_kind(request.schedule));
  options.schedule.virtual_stages = request.virtual_stages;
  options.schedule.stage_layers = request.stage_layers;
  options.schedule.micro_batch = request.micro_batch;
  options.schedule.sequence_length = request.sequence_length;
  options.sharding.sequence_parallel =
      request.sequence ? model::SequenceParallel::on : model::SequenceParallel::off;
  const int share = data * request.micro_batch;
  options.schedule.micro_batches = request.global_batch / share;
  // The engine is told whole micro-batches, and nothing of degrees that were asked for.
  const bool told = request.global_batch % share == 0 && options.schedule.micro_batches > 0 &&
                    (request.data == 0 || request.data == data);
  return told && engine::check(options).ok();
}

}  // namespace

TEST_CASE("the plugin, the configuration, the engine and the plan have one verdict") {
  std::mt19937 random(20261122);
  int legal = 0;
  int illegal = 0;
  while (legal + illegal < 1200) {
    const auto request = draw(random);
    INFO(request.text());
    const bool expected = is_legal(request);
    (expected ? legal : illegal) += 1;
    CHECK(plugin_takes(request) == expected);

    const auto config =
        config::Config::resolve({.files = {}, .environment = {}, .settings = request.settings()});
    if (!config.ok()) {
      CHECK_FALSE(expected);
      continue;
    }
    // Ranks are all that a configuration does not know.
    auto wide = request;
    wide.world = request.tensor * request.pipeline * std::max(1, request.data);
    if (request.data > 0) CHECK(is_legal(wide));
    const auto model = base::value_or_throw(huggingface::configured_model(*config));
    CHECK(engine_takes(*config, model, request.world) == expected);
    CHECK(engine_checks(request, model) == expected);
    CHECK(plan::plan_memory(*config, model, request.world, {.only = base::Rank{0}}).ok() ==
          expected);
  }
  CHECK(legal > 200);
  CHECK(illegal > 200);
}
