// SPDX-License-Identifier: Apache-2.0
// Mistakes as people make them, through `trireme train`: how each ends, and what it says.
#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace trireme;
using namespace trireme::tests;
namespace fs = std::filesystem;

namespace {

constexpr const char* configuration = TRIREME_SOURCE_DIR "/configs/debug-tiny.conf";

struct Mistake {
  std::vector<std::string> settings;
  int exit_code;
  /// Parts of what must be said.
  std::vector<std::string> words;
  int ranks = 1;
};

/// A folder with good tokens, cut ones, and a run of two steps.
class Place {
 public:
  Place() {
    write_tokens(folder_.path() / "tokens", made_up_tokens(3000, 512));
    for (const auto* name : {"cut", "headless"}) {
      for (const auto* part : {".bin", ".idx"}) {
        fs::copy(at("tokens") + part, at(name) + part);
      }
    }
    fs::resize_file(at("cut") + ".bin", 100);
    fs::resize_file(at("headless") + ".idx", 40);
    folder_.write("file", "x");
  }

  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }

  ProgramEnd train(int ranks, const std::vector<std::string>& settings,
                   const std::vector<std::string>& options = {}) const {
    std::vector<std::string> all{"data.train=" + at("tokens"), "run.directory=" + at("run"),
                                 "train.steps=2"};
    all.insert(all.end(), settings.begin(), settings.end());
    std::vector<std::string> words{"train", configuration};
    words.insert(words.end(), options.begin(), options.end());
    return on_ranks(ranks, with_settings(words, all));
  }

  void check(const Mistake& mistake) const {
    const auto end = train(mistake.ranks, mistake.settings);
    INFO(mistake.settings.back() << ": " << end.err);
    CHECK(end.exit_code == mistake.exit_code);
    CHECK(end.out.empty());
    for (const auto& words : mistake.words) {
      INFO(words);
      CHECK(says(end.err, words));
    }
    CHECK_FALSE(says(end.err, "defect of Trireme"));
  }

 private:
  TemporaryFolder folder_;
};

/// One bit of the file's last quarter, where values are.
void flip_bit(const fs::path& path) {
  const auto place = static_cast<std::streamoff>(fs::file_size(path) * 3 / 4);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(place);
  const auto byte = static_cast<char>(file.get() ^ 0x40);
  file.seekp(place);
  file.put(byte);
}

}  // namespace

TEST_CASE("mistakes in the configuration end train with 2 and the rule") {
  const Place place;
  const std::vector<Mistake> mistakes{
      {{"train.stesp=5"}, 2, {"did you mean 'train.steps'?"}},
      {{"train.steps=many"}, 2, {"is not a whole number"}},
      {{"numerics.backend=gpu"}, 2, {"did you mean 'cuda'?"}},
      {{"model.architecture=bert"}, 2, {"gpt2, llama, qwen3"}},
      {{"model.from=/absent"}, 2, {"/absent/config.json"}},
      {{"model.num_attention_heads=5"}, 2, {"hidden_size = 32", "not a multiple"}},
      {{"model.num_key_value_heads=3"}, 2, {"does not divide", "try 1, 2, 4"}},
      {{"parallel.tensor=3"}, 2, {"whole heads", "try 1, 2, 4"}, 3},
      {{"train.micro_batch=2", "train.global_batch=7"}, 2, {"try 6 or 8"}},
      {{"parallel.pipeline=2", "parallel.schedule=interleaved"}, 2, {"virtual_stages"}, 2},
      {{"model.max_position_embeddings=16"}, 2, {"train.sequence_length = 32"}},
      {{"comm.backend=staged"}, 2, {"GPU memory"}},
      {{"data.train="}, 2, {"data.train is empty", "data prepare"}},
  };
  for (const auto& mistake : mistakes) place.check(mistake);
  CHECK_FALSE(fs::exists(place.at("run") + "/metrics.jsonl"));
}

TEST_CASE("a mistake is said though the rank that says it is the last to start") {
  const auto end = run_program(
      {.program = TRIREME_SOURCE_DIR "/tests/support/mpirun",
       .arguments = {"3", "sh", "-c",
                     R"([ "$OMPI_COMM_WORLD_RANK" = 0 ] && sleep 1; exec "$0" "$@")",
                     TRIREME_EXECUTABLE, "train", configuration, "--set", "train.stesp=5"},
       .timeout_seconds = 120});
  CHECK(end.exit_code == 2);
  INFO(end.err);
  CHECK(says(end.err, "did you mean 'train.steps'?"));
}

TEST_CASE("mistakes with data, folders and ranks end train with their own codes") {
  const Place place;
  const std::vector<Mistake> mistakes{
      {{"data.train=/absent"}, 6, {"there are no tokens at '/absent'"}},
      {{"data.train=" + place.at("cut")}, 6, {"size is 100 bytes", "cut short"}},
      {{"data.train=" + place.at("headless")}, 6, {"headless.idx", "damaged"}},
      {{"model.vocab_size=200"}, 6, {"outside the model's vocabulary of 200"}},
      {{"checkpoint.load=/absent"}, 6, {"'/absent' is no checkpoint"}},
      {{"run.directory=" + place.at("file")}, 6, {"Not a directory"}},
      {{"parallel.tensor=4"}, 3, {"is not the world size 2", "or start 4 ranks"}, 2},
      {{"parallel.data=3"}, 3, {"is not the world size 2", "try 1 x 1 x 2"}, 2},
  };
  for (const auto& mistake : mistakes) place.check(mistake);
}

TEST_CASE("a run that cannot be continued ends train with the reason, and stays as it is") {
  const Place place;
  REQUIRE(place.train(1, {}).exit_code == 0);
  const auto step = fs::path(place.at("run")) / "checkpoints/step-000000002";
  REQUIRE(fs::exists(step));
  const auto fresh = place.train(1, {}, {"--fresh"});
  CHECK(fresh.exit_code == 2);
  CHECK(says(fresh.err, "is not empty (--fresh overwrites nothing)"));
  const auto other = place.train(1, {"model.hidden_size=64", "train.steps=3"});
  CHECK(other.exit_code == 2);
  CHECK(says(other.err, "a run keeps its model"));
  flip_bit(step / "shard-00000.h5");
  const auto damaged = place.train(1, {"train.steps=3"});
  INFO(damaged.err);
  CHECK(damaged.exit_code == 6);
  CHECK(says(damaged.err, "step-000000002"));
  CHECK(fs::exists(step));
}

TEST_CASE("a world of one speaks, whatever rank the inherited variables of a launcher name") {
  const auto end_with = [](const std::map<std::string, std::string>& variables) {
    ProgramStart start{.program = TRIREME_EXECUTABLE, .arguments = {"eval", "--weights", "absent"}};
    for (const auto& [name, value] : variables) start.environment[name] = value;
    return run_program(start);
  };
  const auto mpirun = end_with({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}});
  INFO(mpirun.err);
  CHECK(mpirun.exit_code == 3);
  CHECK(says(mpirun.err, "mpirun started 4 tasks"));
  const auto srun = end_with({{"SLURM_JOB_ID", "7"},
                              {"SLURM_STEP_ID", "0"},
                              {"SLURM_STEP_NUM_TASKS", "4"},
                              {"SLURM_PROCID", "1"}});
  INFO(srun.err);
  CHECK(srun.exit_code == 3);
  CHECK(says(srun.err, "srun started 4 tasks"));
}
