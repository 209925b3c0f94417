// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/json.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <sstream>

using namespace trireme::tests;
using trireme::base::Json;

namespace {

/// Four layers with 6 query heads that share 2 key heads.
std::filesystem::path write_model(const TemporaryFolder& folder) {
  return folder.write("model.conf",
                      "[model]\narchitecture = llama\nvocab_size = 1000\nhidden_size = 384\n"
                      "intermediate_size = 1024\nnum_hidden_layers = 4\n"
                      "num_attention_heads = 6\nnum_key_value_heads = 2\nhead_dim = 64\n"
                      "max_position_embeddings = 1024\n[numerics]\nprecision = bf16\n");
}

Json ownership(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "ownership");
  arguments.emplace_back("--json");
  const auto end = run_trireme(std::move(arguments));
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  return Json::parse(end.out);
}

void check_refused(std::vector<std::string> arguments, const std::string& part) {
  arguments.insert(arguments.begin(), "ownership");
  const auto end = run_trireme(std::move(arguments));
  INFO(end.err);
  CHECK(end.exit_code == 2);
  CHECK(end.out.empty());
  CHECK(contains(end.err, part));
}

}  // namespace

TEST_CASE("ownership names the owners of every matrix of the layers") {
  const TemporaryFolder folder;
  const auto model = write_model(folder).string();
  for (const std::string assignment : {"auto", "contiguous", "padded", "shared"}) {
    INFO(assignment);
    const auto plan = ownership(
        {model, "--data-parallel", "3", "--tensor-parallel", "2", "--assignment", assignment});
    CHECK(plan["optimizer"] == "muon");
    CHECK(plan["ranks"] == 6);
    if (assignment != "auto") CHECK(plan["assignment"] == assignment);
    CHECK(plan["max_over_mean"].get<double>() >= 1.0);
    CHECK(plan["load"].size() == 6);
    std::set<std::string> names;
    for (const auto& matrix : plan["matrices"]) {
      names.insert(matrix["name"].get<std::string>());
      for (const auto& rank : matrix["owner"]) CHECK(rank.get<int>() < 6);
    }
    CHECK(names.size() == 4 * 7);
    CHECK(names.count("layers.2.attention.k.weight") == 1);
  }
}

TEST_CASE("replicas of ownership need not divide the batch of the configuration") {
  const TemporaryFolder folder;
  const auto plan = ownership({write_model(folder).string(), "--data-parallel", "3", "--set",
                               "train.global_batch=4", "--set", "train.micro_batch=2"});
  CHECK(plan["ranks"] == 3);
}

TEST_CASE("bytes of a plan are those of AdamW at ZeRO level 1 and padding") {
  const TemporaryFolder folder;
  const auto plan =
      ownership({write_model(folder).string(), "--data-parallel", "4", "--assignment", "padded"});
  // Four layers, two tables, nine norms: gradients in four bytes, parameters in two.
  const double layer = 384.0 * 64 * (6 + 2 + 2 + 6) + 3 * 1024.0 * 384;
  const double elements = 4 * layer + 2 * 1000.0 * 384 + 9 * 384;
  CHECK(plan["bytes_on_wire"].get<double>() ==
        Approx(elements * (1 + plan["padding"].get<double>()) * 3 * 6));
}

TEST_CASE("ownership follows the optimizer's keys as a run does") {
  const TemporaryFolder folder;
  const auto model = write_model(folder).string();
  const auto plan = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> arguments{model, "--data-parallel", "2", "--tensor-parallel", "2"};
    for (const auto& setting : settings) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    return ownership(arguments);
  };
  for (const std::string assignment : {"contiguous", "padded", "shared"}) {
    CHECK(plan({"optimizer.assignment=" + assignment})["assignment"] == assignment);
  }
  CHECK(plan({"optimizer.name=muon", "optimizer.adamw_matrices=*.mlp.*"})["matrices"].size() ==
        4 * 4);
  const auto flops = [](const Json& of) {
    double sum = 0;
    for (const auto& each : of["load"]) sum += each.get<double>();
    return sum;
  };
  const auto muon = plan({"optimizer.name=muon"});
  CHECK(flops(plan({"optimizer.name=muon", "optimizer.per_head=true"})) < flops(muon));
  const auto soap = plan({"optimizer.name=soap"});
  CHECK(soap["optimizer"] == "soap");
  CHECK(flops(soap) != flops(muon));
  // A group of a byte has one matrix, and two exchanges.
  const auto exchange = [](const Json& of) { return of["step_ms"]["exchange"].get<double>(); };
  CHECK(exchange(plan({"optimizer.name=muon", "optimizer.group_bytes=1"})) > 2 * exchange(muon));
  check_refused({model, "--data-parallel", "2", "--set", "optimizer.name=muon", "--set",
                 "optimizer.adamw_matrices=*.norm"},
                "which no matrix of a layer is called");
  check_refused({model, "--data-parallel", "2", "--set", "optimizer.per_head=true"},
                "optimizer.per_head = true (--set) does not go with optimizer.name = adamw");
}

TEST_CASE("ownership takes configurations, Hugging Face folders and runs, from any folder") {
  const TemporaryFolder folder;
  write_model(folder);
  folder.write("config.resolved.conf", "include = model.conf\nparallel.tensor = 2\n");
  // A run: its own tensor degree, unless the command gives one.
  CHECK(ownership({folder.path().string(), "--data-parallel", "2"})["ranks"] == 4);
  CHECK(ownership({folder.path().string(), "--data-parallel", "2", "--tensor-parallel",
                   "1"})["ranks"] == 2);
  const std::string golden = std::string(TRIREME_SOURCE_DIR) + "/tests/golden/models/qwen3-tied";
  const auto published = ownership({golden, "--data-parallel", "2"});
  CHECK(published["matrices"].size() % 7 == 0);
  CHECK(published["matrices"][0]["name"].get<std::string>().starts_with("layers."));
}

TEST_CASE("ownership prints a table and draws a picture") {
  const TemporaryFolder folder;
  const auto picture = folder.path() / "owners.svg";
  const auto end = run_trireme({"ownership", write_model(folder).string(), "--data-parallel", "2",
                                "--svg", picture.string()});
  CHECK(end.exit_code == 0);
  CHECK(contains(end.out, "optimizer   muon (assumed: optimizer.name = adamw"));
  CHECK(contains(end.out, "\nAdamW "));
  CHECK(contains(end.out, "3.attention.q"));
  CHECK(contains(end.err, "owners.svg"));
  std::istringstream lines(end.out);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
  CHECK(std::filesystem::file_size(picture) > 1000);
}

TEST_CASE("ownership refuses what cannot be, and says what can") {
  const TemporaryFolder folder;
  const auto model = write_model(folder).string();
  check_refused({"nowhere.conf", "--data-parallel", "2"}, "cannot open 'nowhere.conf'");
  check_refused({folder.path().string(), "--data-parallel", "2"}, "config.json");
  check_refused({model}, "--data-parallel is required");
  check_refused({model, "--data-parallel", "0"}, "parallel.data");
  check_refused({model, "--data-parallel", "70000"}, "are 70000 ranks (at most 65536 are planned)");
  check_refused({model, "--data-parallel", "40000", "--tensor-parallel", "2"},
                "are 80000 ranks (at most 65536 are planned)");
  check_refused({model, "--data-parallel", "2", "--tensor-parallel", "4"},
                "does not divide model.num_attention_heads = 6");
  check_refused({model, "--data-parallel", "2", "--assignment", "shard"}, "did you mean 'shared'?");
  check_refused({"--data-parallel", "2"}, "model.architecture is not given");
}

TEST_CASE("ownership of one pipeline stage says that others have their own") {
  const TemporaryFolder folder;
  const auto end = run_trireme({"ownership", write_model(folder).string(), "--data-parallel", "2",
                                "--set", "parallel.pipeline=2"});
  CHECK(end.exit_code == 0);
  CHECK(contains(end.err, "parallel.pipeline = 2"));
}

TEST_CASE("the page about matrix optimizers shows what the command prints and draws") {
  const TemporaryFolder folder;
  const auto picture = folder.path() / "ownership.svg";
  const std::string source = TRIREME_SOURCE_DIR;
  const auto end = run_trireme({"ownership", source + "/configs/qwen3-0.6b.conf", "--data-parallel",
                                "8", "--svg", picture.string()});
  REQUIRE(end.exit_code == 0);
  const auto read = [](const std::filesystem::path& path) {
    return trireme::base::value_or_throw(trireme::base::read_text_file(path));
  };
  const auto page = read(source + "/docs/matrix-optimizers.md");
  const std::string begin = "<!-- generated: ownership -->\n```text\n";
  INFO("put there what the command of the page prints, and its --svg in docs/images");
  CHECK(contains(page, begin + end.out + "```\n<!-- end -->"));
  CHECK(read(source + "/docs/images/ownership.svg") == read(picture));
}
