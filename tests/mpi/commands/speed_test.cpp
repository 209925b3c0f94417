// SPDX-License-Identifier: Apache-2.0
// Speed as a run tells its own, beside what can be counted from outside.
#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <sstream>

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr int ranks = 2;
constexpr int steps = 6;
constexpr double tokens_per_step = 4 * 64;
/// q, k, v, output; gate, up, down; the head. Tokens are looked up in a table of their own.
constexpr double product_parameters = 2.0 * (4 * 96 * 96 + 3 * 96 * 260) + 300 * 96;
constexpr double flops_per_token = 6 * product_parameters + 12.0 * 2 * 96 * 64;

struct Trained {
  std::vector<base::Json> events;
  std::vector<base::Json> lines;
  std::string log;
  double seconds = 0;
};

Trained train(const std::filesystem::path& folder, const std::string& name,
              const std::string& peak) {
  const auto tokens = (folder / "tokens").string();
  write_tokens(tokens, made_up_tokens(4000, 300));
  const auto run = folder / name;
  const auto begin = std::chrono::steady_clock::now();
  ProgramStart start{
      .program = TRIREME_SOURCE_DIR "/tests/support/mpirun",
      .arguments = with_settings(
          {std::to_string(ranks), TRIREME_EXECUTABLE, "train", "-v"},
          {"run.directory=" + run.string(), "data.train=" + tokens, "model.architecture=llama",
           "model.vocab_size=300", "model.hidden_size=96", "model.num_hidden_layers=2",
           "model.num_attention_heads=4", "model.num_key_value_heads=4",
           "model.intermediate_size=260", "train.sequence_length=64", "train.micro_batch=2",
           "train.global_batch=4", "train.steps=" + std::to_string(steps), "train.log_every=1",
           "numerics.threads=1", "numerics.peak_flops=" + peak}),
      .timeout_seconds = 120};
  // Measurements of the user's programs are kept there.
  start.environment["XDG_CACHE_HOME"] = (folder / "cache").string();
  const auto end = run_program(start);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  return {metrics(run, "event"), metrics(run, "train"), end.err, took.count()};
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("tokens a second and MFU are what can be counted of a run") {
  const TemporaryFolder folder;
  const auto run = train(folder.path(), "given", "1e10");
  REQUIRE(run.lines.size() == steps);
  double seconds = 0;
  for (int step = 1; step <= steps; ++step) {
    const auto& line = run.lines[static_cast<std::size_t>(step - 1)];
    CAPTURE(line.dump());
    const double step_seconds = line["step_ms"].get<double>() / 1e3;
    CHECK(line["tokens"] == step * tokens_per_step);
    CHECK(line["tokens_per_second"].get<double>() == Approx(tokens_per_step / step_seconds));
    CHECK(line["mfu"].get<double>() ==
          Approx(flops_per_token * tokens_per_step / step_seconds / (ranks * 1e10)));
    seconds += step_seconds;
  }
  // The clock of the run is that of the world: its steps fit between start and end.
  CHECK(seconds > 0);
  CHECK(seconds < run.seconds);
}

TEST_CASE("a measured peak stands in the first lines of a run, and no step beats it") {
  const TemporaryFolder folder;
  const auto run = train(folder.path(), "measured", "auto");
  REQUIRE_FALSE(run.events.empty());
  const auto& start = run.events.front();
  CHECK(start["event"] == "start");
  CHECK(start["peak_flops"].get<double>() > 0);
  CHECK(says(start["peak_source"], "fastest fp32 products"));
  for (const auto& line : run.lines) {
    CAPTURE(line.dump());
    CHECK(line["mfu"].get<double>() > 0);
    CHECK(line["mfu"].get<double>() <= 1);
  }
  // A step that beats it, measured while the machine was busy, says so in a line of its own, once.
  CHECK(count_of(run.log, "MFU divides by") == 1 + count_of(run.log, "from now on"));
  CHECK(count_of(run.log, "from now on") <= 1);
  // Another run on the same cores divides by the same number, or a larger one that a step has
  // shown.
  const auto other = train(folder.path(), "other", "auto");
  CHECK(other.events.front()["peak_flops"].get<double>() >= start["peak_flops"].get<double>());
  CHECK(says(other.log, "as an earlier start measured them"));
  std::istringstream text(run.log);
  int step_lines = 0;
  for (std::string line; std::getline(text, line);) {
    if (!says(line, "tok/s")) continue;
    ++step_lines;
    CHECK(says(line, "mfu"));
    CHECK_FALSE(says(line, "TFLOP/s"));
  }
  CHECK(step_lines == steps);
}
