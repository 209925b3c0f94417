// SPDX-License-Identifier: Apache-2.0
#include "train/saving/saved_contents.hpp"

#include "trireme/base/format.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/engine/options.hpp"
#include "trireme/model/parameters.hpp"

#include <catch2/catch.hpp>

using namespace trireme;

namespace {

/// Dimensions of Llama 3.1 405B, from its config.json.
model::ModelConfig llama_405b() {
  model::ModelConfig config;
  config.architecture = model::Architecture::llama;
  config.vocab_size = 128'256;
  config.hidden_size = 16'384;
  config.intermediate_size = 53'248;
  config.num_hidden_layers = 126;
  config.num_attention_heads = 128;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  config.tie_word_embeddings = false;
  return config;
}

engine::EngineOptions options_of(const model::ModelConfig& model, const layout::Mesh& mesh,
                                 int zero_level) {
  engine::EngineOptions options;
  options.model = model;
  options.sharding.mesh = mesh;
  options.sharding.zero_level = zero_level;
  return options;
}

/// The manifest of a save whose files all have the length that the contents need.
checkpoint::Manifest manifest_of(checkpoint::Contents contents, int ranks) {
  checkpoint::Manifest manifest;
  manifest.state = base::Json::object();
  for (int rank = 0; rank < ranks; ++rank) {
    manifest.files.push_back(
        {base::format("shard-{:05}.h5", rank), std::uint64_t{1} << 40, std::string(64, '0')});
  }
  manifest.contents = std::move(contents);
  return manifest;
}

}  // namespace

TEST_CASE("the manifest of 405B on 4,096 ranks has at most 8 MiB and is read back") {
  const auto options = options_of(llama_405b(), layout::Mesh::of(16, 32, 8), 1);
  const auto manifest = manifest_of(train::saved_contents(engine::sharding_of(options)), 4096);
  CHECK(manifest.contents.payload_bytes() ==
        12 * static_cast<std::uint64_t>(model::parameter_count(options.model)));
  const auto text = checkpoint::manifest_text(manifest);
  CHECK(text.size() <= std::size_t{8} << 20);
  const auto read = checkpoint::parse_manifest(text, "manifest.json");
  REQUIRE(read.ok());
  CHECK(read->contents.hash() == manifest.contents.hash());
}

TEST_CASE("a checkpoint has every element of a table that is divided into blocks, once") {
  const auto options = options_of(llama_405b(), layout::Mesh::of(1, 512, 8), 3);
  CHECK(train::saved_contents(engine::sharding_of(options)).payload_bytes() ==
        12 * static_cast<std::uint64_t>(model::parameter_count(options.model)));
}

TEST_CASE("contents are the same for every rank and every ZeRO level, not for every layout") {
  auto model = llama_405b();
  model.num_hidden_layers = 3;
  model.tie_word_embeddings = true;
  const auto mesh = layout::Mesh::of(3, 2, 4);
  auto options = options_of(model, mesh, 0);
  const auto hash = train::saved_contents(engine::sharding_of(options)).hash();
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    options.sharding.rank = base::Rank(rank);
    options.sharding.zero_level = rank % 2;
    CHECK(train::saved_contents(engine::sharding_of(options)).hash() == hash);
  }
  CHECK(train::saved_contents(engine::sharding_of(options_of(model, layout::Mesh::of(3, 4, 2), 0)))
            .hash() != hash);
}
