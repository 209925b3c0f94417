// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/json.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

using namespace trireme::tests;
using trireme::base::Json;

namespace {

/// Seven layers, so that stages differ.
ProgramEnd run(const std::string& command, const TemporaryFolder& folder,
               std::vector<std::string> settings, std::vector<std::string> options) {
  const auto path = folder.path() / "model.conf";
  std::ofstream(path) << "[model]\narchitecture = llama\nvocab_size = 1000\nhidden_size = 64\n"
                         "intermediate_size = 128\nnum_hidden_layers = 7\n"
                         "num_attention_heads = 4\nnum_key_value_heads = 2\n"
                         "max_position_embeddings = 128\n"
                         "[train]\nsequence_length = 32\nmicro_batch = 2\nglobal_batch = 16\n";
  std::vector<std::string> arguments{command, path.string()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  for (auto& setting : settings) {
    arguments.emplace_back("--set");
    arguments.push_back(std::move(setting));
  }
  return run_trireme(std::move(arguments));
}

Json json_of(const std::string& command, const std::vector<std::string>& settings,
             std::vector<std::string> options = {}) {
  const TemporaryFolder folder;
  options.emplace_back("--json");
  const auto end = run(command, folder, settings, std::move(options));
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  return Json::parse(end.out);
}

template <typename Number>
Number sum_of(const Json& graph, const char* key) {
  Number sum = 0;
  for (const auto& chunk : graph["chunks"]) sum += chunk[key].get<Number>();
  return sum;
}

}  // namespace

TEST_CASE("a graph's chunks add up to the plan's parameters and FLOPs") {
  const std::vector<std::vector<std::string>> cases{
      {},
      {"parallel.pipeline=2"},
      {"parallel.pipeline=2", "model.tie_word_embeddings=true"},
      {"parallel.pipeline=2", "parallel.tensor=2", "parallel.schedule=interleaved",
       "parallel.virtual_stages=2"},
      {"parallel.pipeline=3", "parallel.schedule=zb-v", "parallel.virtual_stages=2"}};
  for (const auto& settings : cases) {
    const auto graph = json_of("graph", settings);
    int world = 1;
    for (const auto& [axis, degree] : graph["mesh"].items()) world *= degree.get<int>();
    const auto plan = json_of("plan", settings, {"--ranks", std::to_string(world)});
    CHECK(sum_of<std::int64_t>(graph, "parameters") == plan["parameters"].get<std::int64_t>());
    CHECK(graph["parameters"] == plan["parameters"]);
    CHECK(sum_of<double>(graph, "flops_per_token") ==
          Approx(plan["flops_per_token"].get<double>()).epsilon(1e-12));
    CHECK(sum_of<int>(graph, "layers") == 7);
  }
}

TEST_CASE("a rank holds all of its chunk without tensor parallelism, and a copy of a tied table") {
  const auto plain = json_of("graph", {"parallel.pipeline=2"});
  for (const auto& chunk : plain["chunks"]) CHECK(chunk["rank_parameters"] == chunk["parameters"]);
  const auto tied = json_of("graph", {"parallel.pipeline=2", "model.tie_word_embeddings=true"});
  CHECK(tied["chunks"][0]["rank_parameters"] == tied["chunks"][0]["parameters"]);
  CHECK(tied["chunks"][1]["rank_parameters"].get<std::int64_t>() ==
        tied["chunks"][1]["parameters"].get<std::int64_t>() + 1000 * 64);
}

TEST_CASE("in the shape of a V the first stage holds a tied table for both ends, once") {
  const auto graph = json_of("graph", {"parallel.pipeline=3", "model.tie_word_embeddings=true",
                                       "parallel.schedule=zb-v", "parallel.virtual_stages=2"});
  std::vector<int> stages;
  for (const auto& chunk : graph["chunks"]) {
    CHECK(chunk["rank_parameters"] == chunk["parameters"]);
    stages.push_back(chunk["stage"].get<int>());
  }
  CHECK(stages == std::vector<int>{0, 1, 2, 2, 1, 0});
}

TEST_CASE("tensor-parallel ranks cut a layer's matrices, and sequence parallelism the message") {
  const auto graph =
      json_of("graph", {"parallel.tensor=2", "parallel.pipeline=2", "numerics.precision=bf16"});
  CHECK(graph["message"]["shape"] == Json({64, 64}));
  CHECK(graph["message"]["bytes"] == 64 * 64 * 2);
  const auto cut = [](const Json& each) { return each["shape"] != each["rank_shape"]; };
  CHECK(std::any_of(graph["layer"].begin(), graph["layer"].end(), cut));
  const auto sequence =
      json_of("graph", {"parallel.tensor=2", "parallel.pipeline=2", "parallel.sequence=true"});
  CHECK(sequence["message"]["shape"] == Json({32, 64}));
}

TEST_CASE("the pictures show each chunk and the messages between them") {
  const TemporaryFolder folder;
  const auto svg = folder.path() / "model.svg";
  const auto dot = folder.path() / "model.dot";
  const auto end =
      run("graph", folder, {"parallel.pipeline=2"}, {"--svg", svg.string(), "--dot", dot.string()});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  const auto read = [](const std::filesystem::path& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  CHECK(read(svg).find("layers 4-6, head") != std::string::npos);
  CHECK(read(svg).find("[64, 64] 16.00 KiB") != std::string::npos);
  CHECK(read(dot).find("chunk0 -> chunk1 [label=\"[64, 64] 16.00 KiB\"]") != std::string::npos);
}

TEST_CASE("the tables of shapes have the embedding, the final norm and the head too") {
  const auto names = [](const Json& list) {
    std::vector<std::string> all;
    for (const auto& each : list) all.push_back(each["name"].get<std::string>());
    return all;
  };
  using Names = std::vector<std::string>;
  const auto cut = json_of("graph", {"parallel.tensor=2"});
  CHECK(names(cut["embedding"]) == Names{"embedding.weight"});
  CHECK(cut["embedding"][0]["rank_shape"] == Json({500, 64}));
  CHECK(names(cut["head"]) == Names{"final_norm.weight", "head.weight"});
  CHECK(cut["head"][0]["rank_shape"] == Json({64}));
  CHECK(cut["head"][1]["rank_shape"] == Json({500, 64}));
  const auto tied = json_of("graph", {"model.tie_word_embeddings=true"});
  CHECK(names(tied["head"]) == Names{"final_norm.weight"});

  const TemporaryFolder folder;
  const auto path = folder.path() / "model.svg";
  const auto end = run("graph", folder, {}, {"--out", path.string()});
  REQUIRE(end.exit_code == 0);
  std::stringstream picture;
  picture << std::ifstream(path).rdbuf();
  for (const std::string name : {"embedding.weight", "final_norm.weight", "head.weight"}) {
    CHECK(end.out.find(name) != std::string::npos);
    CHECK(picture.str().find(">" + name + "<") != std::string::npos);
  }
}
