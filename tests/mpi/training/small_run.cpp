// SPDX-License-Identifier: Apache-2.0
#include "mpi/training/small_run.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/data/indexed_tokens.hpp"
#include "trireme/runtime/session.hpp"

#include "support/mpi/world.hpp"

#include <fstream>

namespace trireme::testing {

RunFolder::RunFolder() : world_(mpi().make_world({comm::Backend::mpi, 60})) {
  if (world_->rank() == 0) {
    folder_.emplace();
    std::vector<std::int32_t> tokens{1};
    for (int at = 1; at < 900; ++at) tokens.push_back((tokens.back() * 3 + at % 5) % 61);
    auto writer = base::value_or_throw(
        data::IndexedTokensWriter::create(folder_->path() / "tokens", data::TokenType::int32));
    writer.append_document(tokens);
    writer.finish();
  }
  path_ = comm::broadcast_bytes(*world_, folder_ ? folder_->path().string() : "");
}

config::Config small_config(const RunFolder& folder, const std::filesystem::path& run,
                            const std::vector<std::string>& more) {
  std::vector<std::string> settings{
      "run.directory=" + run.string(),
      "run.binding=none",
      "data.train=" + (folder.path() / "tokens").string(),
      "model.architecture=gpt2",
      "model.vocab_size=61",
      "model.hidden_size=32",
      "model.num_hidden_layers=2",
      "model.num_attention_heads=4",
      "train.sequence_length=10",
      base::format("train.global_batch={}", small_micro_batches),
      "train.steps=6",
      "optimizer.learning_rate=0.003",
      "numerics.threads=1",
      "numerics.precision=fp32",
      "numerics.peak_flops=1e12",
      base::format("parallel.pipeline={}", mpi().world_size()),
  };
  settings.insert(settings.end(), more.begin(), more.end());
  return base::value_or_throw(
      config::Config::resolve({.files = {}, .environment = {}, .settings = settings}));
}

RunEnd run_to_end(const config::Config& config, std::unique_ptr<device::Kernels> kernels,
                  train::StartOptions start, const base::Environment& environment) {
  still_going(config::run_directory(config).filename().string());
  runtime::JoinOptions options;
  options.arrangement = config::arrangement(config.options());
  options.timeout_seconds = 60;
  options.binding = runtime::BindingRule::none;
  runtime::Session session{std::move(kernels), runtime::join(mpi(), options, {})};
  try {
    train::Trainer trainer(config, session, std::move(start));
    trainer.comment_job(environment);
    return {trainer.run(), ""};
  } catch (const base::Error& error) {
    return {error.code(), error.what()};
  }
}

std::vector<std::int64_t> steps_of(const std::filesystem::path& run, const std::string& what) {
  std::vector<std::int64_t> steps;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
    if (json.at("kind") == what || json.value("event", "") == what) {
      steps.push_back(json.at("step").get<std::int64_t>());
    }
  }
  return steps;
}

}  // namespace trireme::testing
