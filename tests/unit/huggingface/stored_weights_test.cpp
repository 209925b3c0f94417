// SPDX-License-Identifier: Apache-2.0
// The tensors of a folder that a model reads, and those that it refuses.
#include "huggingface/stored_weights.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/model/parameters.hpp"

#include "unit/checkpoint/support.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>
#include <limits>

using namespace trireme;
using namespace trireme::tests;
using huggingface::SafetensorsOutput;
using huggingface::StoredWeights;

namespace {

model::ModelConfig tiny(bool tied) {
  model::ModelConfig config;
  config.architecture = model::Architecture::llama;
  config.vocab_size = 12;
  config.hidden_size = 8;
  config.intermediate_size = 6;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  config.max_position_embeddings = 16;
  config.tie_word_embeddings = tied;
  return config;
}

/// A tensor whose elements count from `first`; row `changed` has -1 instead.
SafetensorsOutput counting(const std::string& name, layout::Shape shape, float first = 0,
                           std::int64_t changed = -1, device::DType dtype = device::DType::f32) {
  const auto width = shape.empty() ? 1 : shape.back();
  return {name, dtype, std::move(shape),
          [=](std::int64_t begin, std::int64_t end, const device::Tensor& part) {
            for (auto at = begin; at < end; ++at) {
              const float value = at / width == changed ? -1.0F : first + static_cast<float>(at);
              if (dtype == device::DType::f32) {
                part.f32()[at - begin] = value;
              } else {
                part.bf16()[at - begin] = device::to_bf16(value);
              }
            }
          }};
}

std::vector<SafetensorsOutput> tensors_of(const model::ModelConfig& config) {
  std::vector<SafetensorsOutput> tensors;
  for (const auto& parameter : model::parameters(config)) {
    const auto stored = huggingface::stored_tensor(config, parameter);
    tensors.push_back(counting(stored.name, stored.shape));
  }
  return tensors;
}

/// Adds a tensor of one byte an element, of any type of the format, to a file of weights.
void add_bytes(const std::filesystem::path& file, const std::string& name, const char* dtype,
               const std::string& shape, std::size_t count) {
  std::ifstream stream(file, std::ios::binary);
  std::uint64_t size = 0;
  stream.read(reinterpret_cast<char*>(&size), sizeof size);
  std::string text(size, ' ');
  stream.read(text.data(), static_cast<std::streamsize>(size));
  auto header = base::Json::parse(text);
  std::string data{std::istreambuf_iterator<char>(stream), {}};
  stream.close();
  header[name] = {{"dtype", dtype},
                  {"shape", base::Json::parse(shape)},
                  {"data_offsets", {data.size(), data.size() + count}}};
  data += std::string(count, 'x');
  text = base::json_text(header);
  size = text.size();
  std::ofstream(file, std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&size), 8) << text << data;
}

/// Failure of opening the weights and reading all rows of the embedding; "read" when there is none.
std::string said_by(const std::filesystem::path& folder, const model::ModelConfig& config,
                    layout::Box box = {{0, 0}, {12, 8}}) {
  try {
    const StoredWeights weights(folder, config);
    std::vector<float> values(static_cast<std::size_t>(layout::element_count(box)));
    weights.read("embedding.weight", box,
                 {values.data(), device::DType::f32, {layout::element_count(box)}});
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::checkpoint);
    return error.what();
  }
  return "read";
}

}  // namespace

TEST_CASE("a head that a tied model does not use is dropped only where it equals the embedding") {
  using Catch::Contains;
  const auto with_head = [](const SafetensorsOutput& head, layout::Box box = {{0, 0}, {12, 8}}) {
    const ScratchFolder scratch;
    auto tensors = tensors_of(tiny(true));
    tensors.push_back(head);
    huggingface::write_safetensors(scratch.path(), tensors);
    return said_by(scratch.path(), tiny(true), box);
  };
  CHECK(with_head(counting("lm_head.weight", {12, 8})) == "read");
  const auto text = with_head(counting("lm_head.weight", {12, 8}, 0, 9));
  CHECK_THAT(text, Contains("config.json: tie_word_embeddings = true") && Contains("row 9") &&
                       Contains("'lm_head.weight'") && Contains("'model.embed_tokens.weight'"));
  CHECK_THAT(with_head(counting("lm_head.weight", {13, 8})), Contains("[13, 8]"));
  // Each rank looks at the rows that it reads.
  const auto changed = counting("lm_head.weight", {12, 8}, 0, 9);
  CHECK(with_head(changed, {{0, 0}, {9, 8}}) == "read");
  CHECK_THAT(with_head(changed, {{9, 0}, {1, 8}}), Contains("row 9"));
  // A diverged model has the same numbers in both, even where they are none.
  const ScratchFolder diverged;
  auto tensors = tensors_of(tiny(true));
  const auto none = std::numeric_limits<float>::quiet_NaN();
  for (auto& tensor : tensors) {
    if (tensor.name == "model.embed_tokens.weight") tensor = counting(tensor.name, {12, 8}, none);
  }
  tensors.push_back(counting("lm_head.weight", {12, 8}, none));
  huggingface::write_safetensors(diverged.path(), tensors);
  CHECK(said_by(diverged.path(), tiny(true), {{0, 0}, {12, 8}}) == "read");
  // 8-bit integers fit a bf16.
  CHECK(with_head(counting("lm_head.weight", {12, 8}, 0, -1, device::DType::bf16)) == "read");
}

TEST_CASE("types that are not read hinder only the tensors that the model needs") {
  using Catch::Contains;
  struct Type {
    const char* name;
    const char* shape;
    std::size_t bytes;
  };
  for (const auto& [name, shape, bytes] :
       {Type{"F8_E8M0", "[3]", 3}, Type{"F4", "[2,3]", 3}, Type{"F6_E2M3", "[4]", 3},
        Type{"F6_E3M2", "[8]", 6}, Type{"C64", "[2]", 16}, Type{"F8_E4M3FNUZ", "[1,1]", 1},
        Type{"F8_E5M2FNUZ", "[2]", 2}, Type{"F8_E4M3", "[2]", 2}, Type{"F64", "[1]", 8},
        Type{"BOOL", "[]", 1}, Type{"I8", "[0]", 0}}) {
    CAPTURE(name);
    const ScratchFolder scratch;
    huggingface::write_safetensors(scratch.path(), tensors_of(tiny(true)));
    add_bytes(scratch.path() / "model.safetensors", "surplus", name, shape, bytes);
    CHECK(said_by(scratch.path(), tiny(true)) == "read");
  }
  // The same types where a tensor of the model stands.
  const std::string norm = "model.norm.weight";
  for (const auto& [name, bytes] :
       {std::pair{"F8_E8M0", 8}, std::pair{"F4", 4}, std::pair{"C64", 64}}) {
    const ScratchFolder scratch;
    auto tensors = tensors_of(tiny(true));
    std::erase_if(tensors, [&](const auto& each) { return each.name == norm; });
    huggingface::write_safetensors(scratch.path(), tensors);
    add_bytes(scratch.path() / "model.safetensors", norm, name, "[8]",
              static_cast<std::size_t>(bytes));
    CHECK_THAT(said_by(scratch.path(), tiny(true)), Contains(norm) && Contains(name));
  }
}

TEST_CASE("two models in one folder are not mixed") {
  using Catch::Contains;
  const ScratchFolder scratch;
  auto tensors = tensors_of(tiny(false));
  tensors.push_back(counting("norm.weight", {8}, 5));
  huggingface::write_safetensors(scratch.path(), tensors);
  CHECK_THAT(said_by(scratch.path(), tiny(false)),
             Contains("'model.norm.weight'") && Contains("'norm.weight'"));
  // A base model's names alone are one model's.
  const ScratchFolder base_model;
  tensors = tensors_of(tiny(true));
  for (auto& each : tensors) each.name = each.name.substr(std::string("model.").size());
  huggingface::write_safetensors(base_model.path(), tensors);
  CHECK(said_by(base_model.path(), tiny(true)) == "read");
  CHECK_THAT(said_by(base_model.path(), tiny(false)), Contains("no tensor 'lm_head.weight'"));
}

TEST_CASE("one file of weights is read before the index of several") {
  const ScratchFolder scratch;
  const ScratchFolder shards;
  huggingface::write_safetensors(scratch.path(), tensors_of(tiny(true)));
  huggingface::write_safetensors(shards.path(), tensors_of(tiny(true)), {.max_shard_bytes = 200});
  for (const auto& file : std::filesystem::directory_iterator(shards.path())) {
    std::filesystem::copy(file.path(), scratch.path() / file.path().filename());
  }
  CHECK(said_by(scratch.path(), tiny(true)) == "read");
  base::write_file_durably(scratch.path() / "model.safetensors",
                           "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n");
  CHECK_THAT(said_by(scratch.path(), tiny(true)), Catch::Contains("git lfs pull"));
}
