// SPDX-License-Identifier: Apache-2.0
#include "support/temporary_folder.hpp"
#include "unit/apps/plans.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <set>

using namespace trireme::tests;
using trireme::base::Json;

TEST_CASE("the plan of a run on GPUs lists what libraries take beside the arenas") {
  const std::string cuda = "numerics.backend=cuda";
  const std::string bf16 = "numerics.precision=bf16";
  CHECK_FALSE(plan_with({bf16}).contains("libraries"));
  const std::string deterministic = "numerics.deterministic=true";
  const auto libraries = plan_with({cuda, bf16, deterministic})["libraries"];
  CHECK(libraries["cuBLASLt"] == 32 * mebibyte);
  // Two bytes a score; dk and dv of every query head; row sums; a page of counters.
  const std::int64_t scores = 2 * 2 * 8 * 1024 * 1024;
  const std::int64_t grouped = 2 * 2 * 2 * 8 * 1024 * 64;
  const std::int64_t sums = 4 * 2 * 8 * 1024;
  CHECK(libraries["cuDNN"] == scores + grouped + sums + 4096);
  // Half of the heads on each of two tensor-parallel ranks.
  CHECK(plan_with({cuda, bf16, deterministic, "parallel.tensor=2"})["libraries"]["cuDNN"] ==
        (scores + grouped + sums) / 2 + 4096);
  // Where bits may vary, dq in fp32 instead of the scores, and again for kernels of Ampere.
  const std::int64_t dq = 4 * 2 * 8 * 1024 * 64;
  CHECK(plan_with({cuda, bf16})["libraries"]["cuDNN"] == 2 * dq + grouped + sums + 4096);
  // Where cuDNN does not serve, it takes nothing.
  CHECK_FALSE(plan_with({cuda})["libraries"].contains("cuDNN"));
  CHECK_FALSE(plan_with({cuda, bf16, "numerics.attention=own"})["libraries"].contains("cuDNN"));
  CHECK_FALSE(plan_with({cuda, bf16, "model.dropout=0.1"})["libraries"].contains("cuDNN"));
}

TEST_CASE("the plan of a run on GPUs says what its start will say of attention") {
  const std::string cuda = "numerics.backend=cuda";
  const std::string bf16 = "numerics.precision=bf16";
  CHECK_FALSE(plan_with({bf16}).contains("attention"));
  const auto said = [&](const std::string& setting) {
    return plan_with({cuda, bf16, setting})["attention"].get<std::string>();
  };
  CHECK_THAT(said("model.dropout=0"), Catch::StartsWith("attention by cuDNN"));
  CHECK_THAT(said("model.dropout=0.1"),
             Catch::Contains("own kernels") && Catch::Contains("set model.dropout = 0"));
}

TEST_CASE("a plan with heads that no kernel of a GPU takes is refused") {
  const auto end =
      run_plan({"numerics.backend=cuda", "numerics.precision=bf16", "model.head_dim=260"});
  CHECK(end.exit_code == 2);
  CHECK_THAT(end.err, Catch::Contains("model.head_dim = 260") && Catch::Contains("256"));
  CHECK(run_plan({"numerics.precision=bf16", "model.head_dim=260"}).exit_code == 0);
}

TEST_CASE("the plan of a run in FP8 says when copies of weights are made, and counts them") {
  const std::string fp8 = "numerics.precision=fp8";
  CHECK_FALSE(plan_with({"numerics.precision=bf16"}).contains("weight_copies"));
  const auto bytes = [](const Json& plan) {
    return plan["ranks"][0]["bytes"]["parameters"].get<std::int64_t>();
  };
  // Two replicas of two sequences each: one micro-batch, in which each weight is read once.
  const auto once = plan_with({fp8});
  CHECK(once["weight_copies"] == "for each use");
  const auto twice = plan_with({fp8, "train.activation_checkpointing=full"});
  CHECK(twice["weight_copies"] == "kept");
  const auto more = plan_with({fp8, "train.micro_batch=1"});
  CHECK(more["weight_copies"] == "kept");
  // Two layers of 512 x (8 + 2 + 2 heads of 64), 512 x 512, 512 x 2048 and 1024 x 512.
  const std::int64_t weights = 2 * 512 * (768 + 512 + 2048 + 1024);
  CHECK(bytes(twice) - bytes(once) >= weights);
  CHECK(bytes(twice) - bytes(once) < weights + 9 * 512);
}

TEST_CASE("a plan that chooses what is computed again fits, or says what is missing") {
  const auto with = [](std::vector<std::string> settings) {
    settings.insert(settings.begin(), {"train.micro_batch=16", "train.global_batch=32"});
    return settings;
  };
  const std::string automatic = "train.activation_checkpointing=auto";
  const auto kept = plan_with(with({}));
  CHECK(kept["activation_checkpointing"] == Json::array({"none"}));
  const auto most = kept["largest"]["total"].get<std::int64_t>();
  const auto limit = std::to_string(most - most / 10);
  const auto fitted = plan_with(with({automatic, "train.memory_limit=" + limit}));
  CHECK(fitted["largest"]["total"].get<std::int64_t>() <= most - most / 10);
  const auto set = fitted["activation_checkpointing"][0].get<std::string>();
  CHECK(set != "none");
  // The set itself makes the same plan.
  CHECK(plan_with(with({"train.activation_checkpointing=" + set}))["ranks"] == fitted["ranks"]);
  const auto in_fp8 = plan_with(with(
      {automatic, "numerics.precision=fp8", "train.micro_batch=8", "train.memory_limit=" + limit}));
  CHECK(in_fp8["largest"]["total"].get<std::int64_t>() <= most - most / 10);
  const auto refusal = [&](std::vector<std::string> settings) {
    const auto end = run_plan(with(std::move(settings)));
    CHECK(end.exit_code == 2);
    return end.err;
  };
  CHECK_THAT(refusal({automatic, "train.memory_limit=1MiB"}),
             Catch::Contains("train.memory_limit"));
  CHECK_THAT(refusal({automatic}), Catch::Contains("needs train.memory_limit"));
  CHECK_THAT(refusal({"train.activation_checkpointing=norm"}),
             Catch::Contains("'norm'") && Catch::Contains("norms, activation"));
}

TEST_CASE("optimizer.assignment decides who owns matrices where ranks divide them") {
  const std::string contiguous = "optimizer.assignment=contiguous";
  const auto bytes = [](std::vector<std::string> settings) {
    // Three layers on two ranks: equal shards need padding, and cuts give unequal ones.
    settings.insert(settings.end(), {"optimizer.name=muon", "model.num_hidden_layers=3"});
    return plan_with(std::move(settings))["ranks"];
  };
  const std::string divided = "parallel.zero_level=1";
  const auto padded = bytes({divided, "optimizer.assignment=padded"});
  const auto cut = bytes({divided, contiguous});
  CHECK(cut[0]["bytes"]["gradients"] < padded[0]["bytes"]["gradients"]);
  CHECK(padded[0]["bytes"]["optimizer"] == padded[1]["bytes"]["optimizer"]);
  CHECK(cut[0]["bytes"]["optimizer"] != cut[1]["bytes"]["optimizer"]);
  CHECK(bytes({contiguous}) == bytes({}));
  // Without a choice, what adds least to a step: 21 matrices of two ranks, one of them cut.
  const auto shared = bytes({divided, "optimizer.assignment=shared"});
  CHECK((shared != padded && shared != cut));
  CHECK(bytes({divided}) == shared);
}

TEST_CASE("at ZeRO level 3 equal shards of matrices are refused, and no other owners are") {
  const std::string divided = "parallel.zero_level=3";
  const std::string muon = "optimizer.name=muon";
  const auto refused = run_plan({divided, muon, "optimizer.assignment=padded"});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Catch::Contains("optimizer.assignment = padded") &&
                              Catch::Contains("set parallel.zero_level=1"));
  for (const std::string assignment : {"auto", "contiguous", "shared"}) {
    CAPTURE(assignment);
    CHECK(run_plan({divided, muon, "optimizer.assignment=" + assignment}).exit_code == 0);
  }
}

TEST_CASE("a plan counts state as it is for matrices that are left to AdamW") {
  const auto bytes = [](const std::string& setting) {
    return plan_with({"optimizer.name=muon", setting})["ranks"][0]["bytes"]["optimizer"]
        .get<std::int64_t>();
  };
  // Two layers' outputs [512, 512]: eight bytes an element instead of four.
  CHECK(bytes("optimizer.adamw_matrices=*.attention.output.weight") ==
        bytes("optimizer.per_head=false") + 2 * 4 * 512 * 512);
}

TEST_CASE("degrees that a plan proposes are ones that the model and the batch allow") {
  const TemporaryFolder folder;
  const auto path = folder.write(
      "model.conf",
      "[model]\narchitecture = llama\nvocab_size = 1000\nhidden_size = 512\n"
      "intermediate_size = 1024\nnum_hidden_layers = 4\nnum_attention_heads = 8\n"
      "[parallel]\ntensor = 2\npipeline = 2\n[train]\nsequence_length = 64\nglobal_batch = 12\n");
  const auto end = run_trireme({"plan", path.string(), "--ranks", "6"});
  CHECK(end.exit_code == 3);
  const auto choices = end.err.find("; try ");
  INFO(end.err);
  REQUIRE(choices != std::string::npos);
  CHECK(contains(end.err, ", or start 4 ranks\n"));
  std::istringstream texts(end.err.substr(choices + 6, end.err.find(", or") - choices - 6));
  int count = 0;
  for (std::string text; std::getline(texts, text, ',');) {
    std::istringstream words(text);
    std::string tensor;
    std::string pipeline;
    std::string data;
    std::string times;
    words >> tensor >> times >> pipeline >> times >> data;
    INFO(text);
    const auto again =
        run_trireme({"plan", path.string(), "--ranks", "6", "--set", "parallel.tensor=" + tensor,
                     "--set", "parallel.pipeline=" + pipeline, "--set", "parallel.data=" + data});
    CHECK(again.exit_code == 0);
    ++count;
  }
  CHECK(count == 3);
  // Seven ranks can be none of heads, layers and sequences.
  CHECK(contains(run_trireme({"plan", path.string(), "--ranks", "7"}).err,
                 "in the mesh); start 4 ranks\n"));
}

TEST_CASE("every configuration of configs/ can be planned on the ranks it is made for") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TRIREME_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".conf") continue;
    const auto path = entry.path().string();
    INFO(path);
    // Its tokenizer is made from the user's text.
    const bool names_vocabulary =
        contains(run_trireme({"config", "check", path}).out, "the size of the vocabulary");
    const auto degree = [&path](const char* key) {
      return std::stoi(run_trireme({"config", "show", path, "--get", key}).out);
    };
    const auto world = degree("parallel.tensor") * degree("parallel.pipeline");
    std::vector<std::string> arguments{"plan", path, "--ranks", std::to_string(world), "--json"};
    if (names_vocabulary) {
      arguments.insert(arguments.end(), {"--set", "model.vocab_size=4096"});
    }
    const auto end = run_trireme(arguments);
    INFO(end.err);
    REQUIRE(end.exit_code == 0);
    const auto plan = Json::parse(end.out);
    CHECK(plan["world_size"] == world);
    CHECK(plan["ranks"].size() == static_cast<std::size_t>(world));
    for (const auto& rank : plan["ranks"]) CHECK(rank["bytes"]["total"] > 0);
    ++count;
  }
  CHECK(count >= 7);
}

TEST_CASE(
    "the copies from which checkpoints are written hold the state once, and can be left out") {
  const auto plan_of = [](const std::string& zero_level, const std::string& asynchronous,
                          const std::vector<std::string>& settings = {}) {
    std::vector<std::string> arguments{"plan",
                                       std::string(TRIREME_SOURCE_DIR) + "/configs/quickstart.conf",
                                       "--ranks",
                                       "8",
                                       "--json",
                                       "--set",
                                       "model.vocab_size=4096",
                                       "--set",
                                       "parallel.tensor=2",
                                       "--set",
                                       "parallel.pipeline=2",
                                       "--set",
                                       "train.global_batch=16",
                                       "--set",
                                       "parallel.zero_level=" + zero_level,
                                       "--set",
                                       "checkpoint.asynchronous=" + asynchronous};
    for (const auto& setting : settings) {
      arguments.emplace_back("--set");
      arguments.push_back(setting);
    }
    const auto end = run_trireme(arguments);
    INFO(end.err);
    REQUIRE(end.exit_code == 0);
    return Json::parse(end.out);
  };
  for (const std::string zero_level : {"0", "1", "3"}) {
    const auto plan = plan_of(zero_level, "true");
    std::int64_t all = 0;
    for (const auto& rank : plan["ranks"]) all += rank["snapshot"].get<std::int64_t>();
    // Masters and two moments in fp32; beside them copies of norms and padding.
    const auto state = 12 * plan["parameters"].get<std::int64_t>();
    CHECK(all >= state);
    CHECK(all < state + state / 50);
  }
  const auto without = plan_of("1", "false");
  for (const auto& rank : without["ranks"]) CHECK(rank["snapshot"] == 0);
  // Copies for two other nodes: of the largest rank, whichever it is.
  const auto plain = plan_of("1", "true");
  const auto copied =
      plan_of("1", "true", {"checkpoint.local_directory=/x", "checkpoint.replicas=2"});
  std::int64_t largest = 0;
  for (const auto& rank : plain["ranks"]) {
    largest = std::max(largest, rank["snapshot"].get<std::int64_t>());
  }
  for (std::size_t index = 0; index < plain["ranks"].size(); ++index) {
    CHECK(copied["ranks"][index]["snapshot"].get<std::int64_t>() ==
          plain["ranks"][index]["snapshot"].get<std::int64_t>() + 2 * largest);
  }
}

TEST_CASE("a plan says of every rank what a plan of that rank alone says") {
  const std::vector<std::string> shape{
      "--set", "model.architecture=llama",    "--set", "model.vocab_size=300",
      "--set", "model.hidden_size=96",        "--set", "model.intermediate_size=160",
      "--set", "model.num_hidden_layers=7",   "--set", "model.num_attention_heads=6",
      "--set", "model.num_key_value_heads=2", "--set", "train.sequence_length=32",
      "--set", "train.global_batch=24",       "--set", "checkpoint.asynchronous=true",
      "--set", "parallel.pipeline=2",         "--set", "parallel.tensor=2"};
  const auto plan = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"plan", "--ranks", "12", "--json"});
    arguments.insert(arguments.end(), shape.begin(), shape.end());
    const auto end = run_trireme(std::move(arguments));
    INFO(end.err);
    REQUIRE(end.exit_code == 0);
    return Json::parse(end.out);
  };
  std::set<std::string> owners;
  for (const std::string optimizer : {"adamw", "muon", "soap"}) {
    for (const std::string level : {"0", "1", "3"}) {
      const std::vector<std::string> rule{"--set", "optimizer.name=" + optimizer, "--set",
                                          "parallel.zero_level=" + level};
      const auto all = plan(rule)["ranks"];
      REQUIRE(all.size() == 12);
      for (int rank = 0; rank < 12; ++rank) {
        CAPTURE(optimizer, level, rank);
        auto alone = rule;
        alone.insert(alone.end(), {"--rank", std::to_string(rank)});
        const auto& found = all[static_cast<std::size_t>(rank)];
        CHECK(plan(alone)["ranks"][0] == found);
        if (optimizer == "muon" && level == "1") {
          owners.insert(found["bytes"].dump() + found["snapshot"].dump());
        }
      }
    }
  }
  // Owners of unlike matrices are measured apart: more kinds than stages and tensor parts.
  CHECK(owners.size() > 4);
}
