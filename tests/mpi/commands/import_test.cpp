// SPDX-License-Identifier: Apache-2.0
// `trireme checkpoint import`: the same bits back from an export, training that goes on at other
// layouts, and folders that are refused by name.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/huggingface/safetensors.hpp"

#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace trireme;
using namespace trireme::tests;
namespace fs = std::filesystem;
using huggingface::SafetensorsFolder;

namespace {

std::vector<float> values(const SafetensorsFolder& folder,
                          const huggingface::SafetensorsEntry& entry) {
  std::vector<float> values(static_cast<std::size_t>(layout::element_count(entry.shape)));
  const device::Tensor flat(values.data(), device::DType::f32,
                            {static_cast<std::int64_t>(values.size())});
  base::success_or_throw(folder.read_box(entry.name, layout::whole(entry.shape), flat));
  return values;
}

void check_same_bits(const fs::path& found_in, const fs::path& expected_in) {
  const auto found = base::value_or_throw(SafetensorsFolder::open(found_in));
  const auto expected = base::value_or_throw(SafetensorsFolder::open(expected_in));
  REQUIRE(found.tensors().size() == expected.tensors().size());
  for (const auto& entry : expected.tensors()) {
    CAPTURE(entry.name);
    const auto* mine = found.find(entry.name);
    REQUIRE(mine != nullptr);
    REQUIRE(mine->shape == entry.shape);
    const auto a = values(found, *mine);
    const auto b = values(expected, entry);
    CHECK(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
  }
}

/// The golden model again with some tensors changed or left out, in shards of at most so many
/// bytes and in the type given.
struct Rewrite {
  device::DType dtype = device::DType::f32;
  std::uint64_t max_shard_bytes = 5'000'000'000;
  std::string left_out = {};
  std::string transposed = {};
};

void rewrite(const fs::path& model, const fs::path& to, const Rewrite& how) {
  const auto source = base::value_or_throw(SafetensorsFolder::open(model));
  std::vector<huggingface::SafetensorsOutput> outputs;
  for (const auto& entry : source.tensors()) {
    if (entry.name == how.left_out) continue;
    auto shape = entry.shape;
    if (entry.name == how.transposed) std::reverse(shape.begin(), shape.end());
    outputs.push_back(
        {entry.name, how.dtype, shape,
         [&source, &entry, &how](std::int64_t begin, std::int64_t end, const device::Tensor& part) {
           const auto all = values(source, entry);
           for (auto at = begin; at < end; ++at) {
             const auto value = all[static_cast<std::size_t>(at)];
             if (how.dtype == device::DType::f32) part.f32()[at - begin] = value;
             if (how.dtype == device::DType::bf16) {
               part.bf16()[at - begin] = device::to_bf16(value);
             }
           }
         }});
  }
  fs::create_directories(to);
  huggingface::write_safetensors(to, outputs, {.max_shard_bytes = how.max_shard_bytes});
  fs::copy_file(model / "config.json", to / "config.json");
}

ProgramEnd import(int ranks, const fs::path& from, const fs::path& to) {
  return on_ranks(ranks, {"checkpoint", "import", from.string(), "--to", to.string()});
}

/// Refused with exit code 6, `part` in its last words, and nothing that looks like a checkpoint.
void check_refused(const fs::path& from, const std::string& part) {
  const TemporaryFolder folder;
  const auto end = import(1, from, folder.path() / "run");
  CAPTURE(end.err, part);
  CHECK(end.exit_code == 6);
  CHECK(says(end.err, part));
  CHECK_FALSE(fs::exists(folder.path() / "run/checkpoints/step-000000000"));
}

std::vector<std::string> training(const fs::path& run, const fs::path& model,
                                  const fs::path& tokens) {
  return with_settings(
      {"-q", "train"},
      {"run.directory=" + run.string(), "model.from=" + model.string(),
       "data.train=" + tokens.string(), "train.sequence_length=16", "train.global_batch=4",
       "optimizer.curve=constant", "optimizer.learning_rate=1e-3", "numerics.threads=1"});
}

double loss_of_step(const fs::path& run, int step) {
  for (const auto& line : metrics(run, "train")) {
    if (line["step"] == step) return line["loss"].get<double>();
  }
  FAIL("no step " << step << " in " << run);
  return 0;
}

}  // namespace

TEST_CASE("what was imported and exported again has the same bits") {
  for (const std::string name : {"gpt2-tied", "gpt2-untied-odd", "llama-grouped-scaled",
                                 "llama-one-key-head-tied", "qwen3-tied", "qwen3-wide-heads"}) {
    CAPTURE(name);
    const TemporaryFolder folder;
    const auto run = folder.path() / "run";
    const auto end = import(name.starts_with("qwen3") ? 3 : 1, golden_model(name), run);
    INFO(end.err);
    REQUIRE(end.exit_code == 0);
    CHECK(says(end.out, "step-000000000"));
    done_on_ranks(1, {"checkpoint", "verify", run.string()});
    const auto exported = folder.path() / "exported";
    done_on_ranks(1, {"checkpoint", "export", run.string(), "--to", exported.string(),
                      "--without-tokenizer"});
    check_same_bits(exported, golden_model(name));
  }
}

TEST_CASE("import takes shards by their index and keeps bf16") {
  const TemporaryFolder folder;
  const auto model = folder.path() / "model";
  rewrite(golden_model("gpt2-untied-odd"), model,
          {.dtype = device::DType::bf16, .max_shard_bytes = 6000});
  REQUIRE(fs::exists(model / "model.safetensors.index.json"));
  const auto run = folder.path() / "run";
  REQUIRE(import(2, model, run).exit_code == 0);
  const auto shown = done_on_ranks(1, {"checkpoint", "inspect", run.string(), "--json"});
  const auto json = base::value_or_throw(base::parse_json(shown, "stdout"));
  CHECK(json["step"] == 0);
  REQUIRE(json["tensors"].size() > 12);
  for (const auto& tensor : json["tensors"]) CHECK(tensor["dtype"] == "bf16");
  const auto exported = folder.path() / "exported";
  done_on_ranks(
      1, {"checkpoint", "export", run.string(), "--to", exported.string(), "--without-tokenizer"});
  check_same_bits(exported, model);
}

TEST_CASE("training goes on from an import at other layouts as from the weights themselves") {
  const TemporaryFolder folder;
  const auto model = golden_model("llama-grouped-scaled");
  const auto tokens = folder.path() / "tokens";
  write_tokens(tokens, made_up_tokens(1200, 71));
  const auto run = folder.path() / "run";
  REQUIRE(import(1, model, run).exit_code == 0);
  const auto plain = folder.path() / "plain";
  done_on_ranks(1, with_settings(training(plain, model, tokens),
                                 {"checkpoint.load=" + model.string(), "train.steps=6"}));
  // In the run itself, then again elsewhere with another optimizer's state to begin.
  done_on_ranks(
      2, with_settings(training(run, model, tokens), {"parallel.tensor=2", "train.steps=3"}));
  done_on_ranks(
      2, with_settings(training(run, model, tokens), {"parallel.tensor=1", "parallel.pipeline=2",
                                                      "parallel.zero_level=1", "train.steps=6"}));
  for (int step = 1; step <= 6; ++step) {
    CAPTURE(step);
    const auto expected = loss_of_step(plain, step);
    CHECK(std::abs(loss_of_step(run, step) - expected) <= 1e-5 * expected);
  }
  CHECK(loss_of_step(run, 6) < loss_of_step(run, 1));
  const auto other = folder.path() / "other";
  const auto step = run / "checkpoints/step-000000000";
  done_on_ranks(
      2, with_settings(training(other, model, tokens), {"checkpoint.load=" + step.string(),
                                                        "train.steps=1", "optimizer.name=sgd"}));
  CHECK(std::abs(loss_of_step(other, 1) - loss_of_step(plain, 1)) <= 1e-5);
}

TEST_CASE("probe reads an import as it reads the weights themselves") {
  const TemporaryFolder folder;
  const auto model = golden_model("qwen3-wide-heads");
  const auto run = folder.path() / "run";
  REQUIRE(import(1, model, run).exit_code == 0);
  const auto probe = [&](const fs::path& weights, const fs::path& out) {
    done_on_ranks(
        2, {"probe", "--weights", weights.string(), "--tokens", (model / "tokens.json").string(),
            "--out", out.string(), "--gradients", "--tensor-parallel", "2"});
  };
  probe(model, folder.path() / "a.safetensors");
  probe(run, folder.path() / "b.safetensors");
  check_same_bits(folder.path() / "b.safetensors", folder.path() / "a.safetensors");
}

TEST_CASE("folders that cannot be imported are refused by name") {
  const TemporaryFolder folder;
  const auto source = golden_model("llama-grouped-scaled");
  const auto made = [&](const char* name) { return folder.path() / name; };

  check_refused(folder.path(), "has no config.json");
  rewrite(source, made("missing"), {.left_out = "model.layers.1.mlp.up_proj.weight"});
  check_refused(made("missing"), "no tensor 'model.layers.1.mlp.up_proj.weight'");
  rewrite(source, made("shape"), {.transposed = "model.layers.0.mlp.down_proj.weight"});
  check_refused(made("shape"),
                "'model.layers.0.mlp.down_proj.weight' has shape [37, 20] but the model needs "
                "[20, 37]");

  rewrite(source, made("cut"), {});
  fs::resize_file(made("cut") / "model.safetensors", 20000);
  check_refused(made("cut"), "model.safetensors");
  rewrite(source, made("shard"), {.max_shard_bytes = 6000});
  fs::remove(made("shard") / "model-00002-of-00007.safetensors");
  check_refused(made("shard"), "model-00002-of-00007.safetensors");

  rewrite(source, made("family"), {});
  auto config = base::value_or_throw(base::read_json_file(made("family") / "config.json"));
  config["model_type"] = "mamba";
  base::write_file_durably(made("family") / "config.json", config.dump());
  check_refused(made("family"), "model_type = 'mamba' is not built in; use gpt2, llama or qwen3");
  base::write_file_durably(made("family") / "config.json", "{");
  check_refused(made("family"), "config.json");
}

TEST_CASE("import overwrites no run") {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run";
  REQUIRE(import(1, golden_model("gpt2-tied"), run).exit_code == 0);
  const auto again = import(1, golden_model("gpt2-untied-odd"), run);
  CHECK(again.exit_code == 6);
  CHECK(says(again.err, "has checkpoints already"));
  const auto model = folder.path() / "model";
  rewrite(golden_model("gpt2-tied"), model, {});
  const auto inside = import(1, model, model);
  CHECK(inside.exit_code == 6);
  CHECK(says(inside.err, "has a config.json"));
  done_on_ranks(1, {"checkpoint", "verify", run.string()});
}
