// SPDX-License-Identifier: Apache-2.0
// Starts that go on with a run: what it keeps, what may change, and from where.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;
namespace fs = std::filesystem;

namespace {

constexpr const char* configuration = TRIREME_SOURCE_DIR "/configs/debug-tiny.conf";

/// A folder with tokens, and the command of a run of two steps in it.
struct Place {
  Place() {
    write_tokens(tokens, made_up_tokens(3000, 512));
    REQUIRE(train({}).exit_code == 0);
  }

  std::vector<std::string> command(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"data.train=" + tokens.string(), "run.directory=" + run.string(),
                                 "train.steps=2", "numerics.threads=1"};
    all.insert(all.end(), more.begin(), more.end());
    return with_settings({"train", configuration}, all);
  }
  ProgramEnd train(const std::vector<std::string>& more, int ranks = 1) const {
    return on_ranks(ranks, command(more));
  }
  std::string text(const char* file) const {
    return base::value_or_throw(base::read_text_file(run / file));
  }
  std::size_t steps() const { return metrics(run, "train").size(); }

  TemporaryFolder folder;
  fs::path tokens = folder.path() / "tokens";
  fs::path run = folder.path() / "run";
};

ProgramEnd in_folder(const fs::path& folder, const std::vector<std::string>& arguments) {
  return run_program({.program = TRIREME_EXECUTABLE,
                      .arguments = arguments,
                      .folder = folder,
                      .timeout_seconds = 120});
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a run's model cannot be changed, and a refused start changes no file of the run") {
  const Place place;
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> changes{
      {{"model.num_hidden_layers=3"}, {"model.num_hidden_layers = 3 (--set) instead of 4"}},
      {{"model.hidden_size=64"}, {"model.hidden_size = 64 (--set) instead of 32"}},
      // Settings that change no shape.
      {{"model.rope_theta=500"}, {"model.rope_theta = 500 (--set) instead of 10000"}},
      {{"model.num_attention_heads=2", "model.num_key_value_heads=1", "model.head_dim=16"},
       {"model.num_attention_heads = 2 (--set) instead of 4",
        "model.num_key_value_heads = 1 (--set) instead of 2",
        "model.head_dim = 16 (--set) instead of 8"}}};
  const std::string model = place.text("model.json");
  const std::string resolved = place.text("config.resolved.conf");
  for (const auto& [settings, words] : changes) {
    auto all = settings;
    all.emplace_back("train.steps=4");
    for (const int ranks : {1, 2}) {
      const auto end = place.train(all, ranks);
      INFO(end.err);
      CHECK(end.exit_code == 2);
      CHECK(count_of(end.err, "a run keeps its model") == 1);
      for (const auto& word : words) CHECK(says(end.err, word));
    }
    const auto checked = on_ranks(1, [&] {
      auto words_of_check = place.command(all);
      words_of_check.front() = "config";
      words_of_check.insert(words_of_check.begin() + 1, "check");
      return words_of_check;
    }());
    CHECK(checked.exit_code == 2);
    CHECK(says(checked.err, words.front()));
    CHECK(place.text("model.json") == model);
    CHECK(place.text("config.resolved.conf") == resolved);
  }
  // The run is as good as before.
  const auto end = place.train({"train.steps=3"});
  INFO(end.err);
  CHECK(end.exit_code == 0);
  CHECK(says(end.err, "goes on after step 2"));
  CHECK(says(end.err, "changed since the last start: train.steps 2 -> 3"));
}

TEST_CASE("what weights do not depend on may change from start to start") {
  const Place place;
  const auto end = place.train({"train.steps=3", "model.max_position_embeddings=64",
                                "model.initializer_range=0.1", "optimizer.learning_rate=1e-4"});
  INFO(end.err);
  CHECK(end.exit_code == 0);
  CHECK(says(end.err, "model.max_position_embeddings 32 -> 64"));
  CHECK(says(end.err, "optimizer.learning_rate 0.001 -> "));
}

TEST_CASE("train --resume goes on from any folder, and after the run was moved") {
  const Place place;
  const auto elsewhere = place.folder.path() / "elsewhere";
  fs::create_directories(elsewhere);
  const auto moved = place.folder.path() / "moved run";
  fs::rename(place.run, moved);
  auto end = in_folder(elsewhere, {"train", "--resume", moved.string(), "--set", "train.steps=3"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(says(end.err, "goes on after step 2"));
  end = in_folder(place.folder.path(),
                  {"train", "--ranks", "2", "--resume", "moved run", "--set", "train.steps=4"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  // A run that is named alone is gone on with, too, and its own file is as good as its folder.
  end = in_folder(elsewhere,
                  {"train", "--set", "run.directory=" + moved.string(), "--set", "train.steps=5"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  end = in_folder(elsewhere, {"train", (moved / "config.resolved.conf").string(), "--set",
                              "train.steps=6", "--set", "parallel.data=auto"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(metrics(moved, "train").back()["step"] == 6);
  // Twelve sequences of 32 in each.
  for (const auto& line : metrics(moved, "train")) {
    CHECK(line["tokens"] == line["step"].get<int>() * 12 * 32);
  }
  CHECK(fs::is_empty(elsewhere));
  CHECK_FALSE(fs::exists(place.run));
}

TEST_CASE("train --resume says what is wrong with the run that it names") {
  const Place place;
  auto end = in_folder(place.folder.path(), {"train", "--resume", "absent"});
  CHECK(end.exit_code == 2);
  CHECK(says(end.err, "there is no 'absent/config.resolved.conf'"));
  end =
      in_folder(place.folder.path(), {"train", "--resume", "run", "--set", "run.directory=other"});
  CHECK(end.exit_code == 2);
  CHECK(says(end.err, "leave one out"));
  for (const auto* part : {".bin", ".idx"}) fs::remove(place.tokens.string() + part);
  end = in_folder(place.folder.path(), {"train", "--resume", "run", "--set", "train.steps=3"});
  CHECK(end.exit_code == 6);
  CHECK(says(end.err, "there are no tokens at '" + place.tokens.string() + "'"));
  CHECK_FALSE(fs::exists(place.folder.path() / "absent"));
  CHECK_FALSE(fs::exists(place.folder.path() / "other"));
  const auto checked = in_folder(place.folder.path(), {"config", "check", "run"});
  CHECK(checked.exit_code == 0);
  CHECK(says(checked.out, "missing: there are no tokens at '" + place.tokens.string() + "'"));
}

TEST_CASE("a run keeps its batch on more ranks") {
  const Place place;
  fs::remove_all(place.run);
  const std::vector<std::string> automatic{"train.global_batch=auto", "train.micro_batch=8"};
  REQUIRE(place.train(automatic).exit_code == 0);
  auto more = automatic;
  more.emplace_back("train.steps=4");
  const auto end = place.train(more, 8);
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(says(end.err, "train.micro_batch is 1 instead of 8: the run keeps its batch of 8"));
  const auto lines = metrics(place.run, "train");
  REQUIRE(lines.size() == 4);
  for (const auto& line : lines) CHECK(line["tokens"] == line["step"].get<int>() * 8 * 32);
  CHECK(lines.back()["first_sample"] == 24);
  // One that the ranks cannot share is refused, and the words say what would help.
  const auto refused = place.train(more, 3);
  CHECK(refused.exit_code == 2);
  CHECK(says(refused.err, "the run's own batch of 8 sequences cannot be shared evenly by 3"));
  auto chosen = automatic;
  chosen.front() = "train.global_batch=24";
  chosen.emplace_back("train.steps=5");
  CHECK(place.train(chosen, 3).exit_code == 0);
}

TEST_CASE(
    "a run that begins with the weights of another may differ from them, but not in tensors") {
  const Place place;
  const auto other = "run.directory=" + (place.folder.path() / "other").string();
  const auto load = "checkpoint.load=" + place.run.string();
  const auto refused = place.train({other, load, "model.hidden_size=64"});
  INFO(refused.err);
  CHECK(refused.exit_code == 2);
  CHECK(says(refused.err, "model.hidden_size = 64 instead of 32"));
  CHECK_FALSE(fs::exists(place.folder.path() / "other"));
  const auto end = place.train({other, load, "model.rope_theta=500", "train.steps=3"});
  INFO(end.err);
  CHECK(end.exit_code == 0);
  CHECK(says(end.err, "model.rope_theta = 500 instead of 10000"));
}

TEST_CASE("a file STOP that stays is named by every start, and by why") {
  const Place place;
  base::write_file_durably(place.run / "STOP", "");
  auto words = place.command({"train.steps=5"});
  words.insert(words.begin(), "-q");
  const auto end = on_ranks(1, words);
  CHECK(end.exit_code == 0);
  CHECK(says(end.err, "STOP' stops every start"));
  CHECK(place.steps() == 2);
  const auto why = on_ranks(1, {"why", place.run.string()});
  CHECK(says(why.out, "remove '" + (place.run / "STOP").string() + "' first"));
}

TEST_CASE("a run that has its steps says once that there is nothing to do") {
  const Place place;
  const auto end = place.train({"train.steps=1", "optimizer.warmup_steps=0"});
  INFO(end.err);
  CHECK(end.exit_code == 0);
  CHECK(says(end.err, "nothing to do: all 2 steps were done before"));
  CHECK_FALSE(says(end.err, "up to step"));
}
