// SPDX-License-Identifier: Apache-2.0
// Samples of a run: in every layout its losses are those of a run without, bit by bit, and the
// texts are what generation makes of the checkpoints of the same steps.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/data/tokenizer_training.hpp"
#include "trireme/inference/generate.hpp"
#include "trireme/runtime/session.hpp"

#include "mpi/training/small_run.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace trireme;
using namespace trireme::testing;

namespace {

const std::vector<std::string> prompts{"line 1 of", "a text", "7", "words words of a text",
                                       "line 22 of a"};
constexpr int new_tokens = 9;

/// Tokenizer and prompts, written by the first rank.
void write_texts(RunFolder& folder) {
  if (mpi().world_rank().value() == 0) {
    std::ofstream text(folder.path() / "text.txt");
    for (int line = 0; line < 60; ++line) {
      text << base::format("line {} of a text has {} words\n", line, line * 7 % 60);
    }
    text.close();
    data::DocumentSources sources;
    sources.paths = {(folder.path() / "text.txt").string()};
    data::TrainingOptions options;
    options.vocab_size = 290;
    base::value_or_throw(data::train_tokenizer(sources, options))
        .tokenizer.save(folder.path() / "tokenizer.json");
    std::ofstream(folder.path() / "prompts.json") << base::Json(prompts).dump();
  }
  folder.wait();
}

struct Layout {
  int tensor;
  int pipeline;
  int data;
  int virtual_stages;
  const char* schedule;
  int zero_level;
};

std::vector<Layout> layouts_of(int ranks) {
  std::vector<Layout> layouts;
  for (int tensor = 1; tensor <= ranks; ++tensor) {
    for (int pipeline = 1; tensor * pipeline <= ranks; ++pipeline) {
      if (ranks % (tensor * pipeline) != 0 || 12 % tensor != 0) continue;
      const int data = ranks / (tensor * pipeline);
      const int level = data > 1 ? 1 : 0;
      layouts.push_back({tensor, pipeline, data, 1, "1f1b", level});
      // Steps gather their weights from all replicas, some of which have no prompt (any more).
      if (data > 1) layouts.push_back({tensor, pipeline, data, 1, "1f1b", 3});
      // Interleaving takes micro-batches in multiples of the stages.
      const bool interleaves = pipeline > 1 && 12 / data % pipeline == 0;
      if (!interleaves) continue;
      layouts.push_back({tensor, pipeline, data, 2, "interleaved", level});
      // The chunk after the last stage's first is on that stage, too.
      if (tensor == 1) layouts.push_back({1, pipeline, data, 2, "zb-v", data > 1 ? 3 : 0});
    }
  }
  return layouts;
}

std::vector<std::string> settings_of(const RunFolder& folder, const Layout& layout) {
  return {"data.validation=" + (folder.path() / "tokens").string(),
          "data.tokenizer=" + (folder.path() / "tokenizer.json").string(),
          "model.vocab_size=300",
          "model.num_hidden_layers=12",
          "model.hidden_size=48",
          "model.num_attention_heads=12",
          "model.max_position_embeddings=64",
          "model.initializer_range=0.3",
          "model.dropout=0.1",
          "train.global_batch=12",
          "train.steps=4",
          "train.eval_every=2",
          "train.eval_batches=1",
          "checkpoint.every_steps=2",
          base::format("parallel.tensor={}", layout.tensor),
          base::format("parallel.pipeline={}", layout.pipeline),
          base::format("parallel.schedule={}", layout.schedule),
          base::format("parallel.virtual_stages={}", layout.virtual_stages),
          base::format("parallel.zero_level={}", layout.zero_level)};
}

/// Lines of a kind in metrics.jsonl.
std::vector<base::Json> lines_of(const std::filesystem::path& run, const std::string& kind) {
  std::vector<base::Json> lines;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
    if (json.at("kind") == kind) lines.push_back(std::move(json));
  }
  return lines;
}

/// Numbers whose bits must not change.
std::vector<base::Json> losses_of(const std::filesystem::path& run) {
  std::vector<base::Json> losses;
  for (const auto& line : lines_of(run, "train")) {
    losses.push_back({line.at("step"), line.at("loss"), line.at("grad_norm")});
  }
  for (const auto& line : lines_of(run, "eval")) {
    losses.push_back({line.at("step"), line.at("loss")});
  }
  return losses;
}

/// Answers of generation, on the first rank.
std::vector<inference::Answer> generated(const config::Config& config,
                                         const std::filesystem::path& weights, double temperature) {
  inference::GenerateRequest request;
  request.weights = weights;
  request.prompts = prompts;
  request.max_tokens = new_tokens;
  request.sampling.temperature = temperature;
  request.sampling.seed = static_cast<std::uint64_t>(config.options().train.seed);
  runtime::JoinOptions options;
  options.arrangement = config::arrangement(config.options());
  options.timeout_seconds = 60;
  options.binding = runtime::BindingRule::none;
  runtime::Session session{device::make_cpu_kernels(1), runtime::join(mpi(), options, {})};
  std::vector<inference::Answer> answers;
  inference::AnswerListener listener;
  listener.answer = [&](const inference::Answer& answer) { answers.push_back(answer); };
  inference::generate(request, config, session, listener);
  return answers;
}

void check_samples(const config::Config& config, double temperature) {
  const auto run = config::run_directory(config);
  for (const int step : {2, 4}) {
    const auto weights = run / "checkpoints" / base::format("step-{:09}", step);
    const auto answers = generated(config, weights, temperature);
    if (mpi().world_rank().value() != 0) continue;
    const auto lines = lines_of(run, "sample");
    REQUIRE(lines.size() == 2);
    const auto& line = lines[static_cast<std::size_t>(step / 2 - 1)];
    CHECK(line.at("step") == step);
    CHECK(line.at("temperature") == temperature);
    CHECK(line.at("seed") == config.options().train.seed);
    CHECK(line.at("seconds") > 0);
    REQUIRE(line.at("samples").size() == prompts.size());
    REQUIRE(answers.size() == prompts.size());
    for (std::size_t index = 0; index < prompts.size(); ++index) {
      const auto& sample = line.at("samples")[index];
      CHECK(sample.at("prompt") == prompts[index]);
      CHECK(sample.at("text") == answers[index].text);
      CHECK(sample.at("tokens") == answers[index].tokens.size());
      CHECK(sample.at("prompt_tokens") == answers[index].prompt_tokens);
    }
  }
}

/// The first rank's arenas have been as full as they were planned to be. Of several replicas each
/// has memory for prompts that are longer than its own: less of its workspace may be used.
void check_memory(const std::filesystem::path& run, const Layout& layout) {
  if (mpi().world_rank().value() != 0) return;
  int lines = 0;
  for (const auto& line : lines_of(run, "event")) {
    if (line.at("event") != "arenas" || line.at("step") != 4) continue;
    ++lines;
    auto used = line.at("used_bytes");
    const auto& planned = line.at("planned_bytes");
    if (layout.data > 1) {
      CHECK(used.at("workspace") <= planned.at("workspace"));
      used["workspace"] = planned.at("workspace");
    }
    CHECK(used == planned);
  }
  CHECK(lines == 1);
}

}  // namespace

TEST_CASE("samples are what generate answers, and no loss knows of them, in every layout") {
  RunFolder folder;
  write_texts(folder);
  int number = 0;
  for (const auto& layout : layouts_of(mpi().world_size())) {
    CAPTURE(layout.tensor, layout.pipeline, layout.data, layout.schedule, layout.zero_level);
    auto settings = settings_of(folder, layout);
    const auto name = [&](const char* kind) {
      return folder.path() / base::format("{}-{}", kind, number);
    };
    const auto plain = small_config(folder, name("plain"), settings);
    REQUIRE(run_to_end(plain, device::make_cpu_kernels(1)).text.empty());
    // Greedy and at random, in turn.
    const double temperature = number % 2 == 0 ? 0.0 : 0.8;
    settings.push_back("train.sample_prompts=" + (folder.path() / "prompts.json").string());
    settings.push_back(base::format("train.sample_tokens={}", new_tokens));
    settings.push_back(base::format("train.sample_temperature={}", temperature));
    const auto sampled = small_config(folder, name("sampled"), settings);
    REQUIRE(run_to_end(sampled, device::make_cpu_kernels(1)).text.empty());
    folder.wait();
    if (mpi().world_rank().value() == 0) {
      const auto losses = losses_of(name("plain"));
      CHECK(losses.size() == 6);
      CHECK(losses == losses_of(name("sampled")));
      CHECK(lines_of(name("plain"), "sample").empty());
    }
    check_samples(sampled, temperature);
    check_memory(name("sampled"), layout);
    folder.wait();
    ++number;
  }
}
