// SPDX-License-Identifier: Apache-2.0
// Whole runs on a device whose memory the host cannot reach: the step loop, evaluation, checkpoints
// that another layout continues, and what a probe says of them. All numbers are those of the host's
// own memory, bit by bit.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/data/indexed_tokens.hpp"
#include "trireme/inference/evaluate.hpp"
#include "trireme/inference/probe.hpp"
#include "trireme/train/trainer.hpp"

#include "support/mpi/world.hpp"
#include "support/simulated_gpu/device.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <optional>

using namespace trireme;
using namespace trireme::testing;
namespace fs = std::filesystem;

namespace {

/// A folder of all ranks, made and removed by the first.
class SharedFolder {
 public:
  SharedFolder() : world_(mpi().make_world({comm::Backend::mpi, 60})) {
    if (world_->rank() == 0) folder_.emplace();
    path_ = comm::broadcast_bytes(*world_, folder_ ? folder_->path().string() : "");
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  /// Nobody still reads.
  ~SharedFolder() { world_->barrier(); }

  fs::path operator/(const std::string& name) const { return path_ / name; }
  bool is_first() const { return world_->rank() == 0; }
  void wait() { world_->barrier(); }

 private:
  std::unique_ptr<comm::ProcessGroup> world_;
  std::optional<tests::TemporaryFolder> folder_;
  fs::path path_;
};

constexpr std::int32_t vocabulary = 61;

void write_data(const SharedFolder& folder) {
  if (!folder.is_first()) return;
  std::vector<std::int32_t> tokens{1};
  for (int at = 1; at < 900; ++at) tokens.push_back((tokens.back() * 3 + at % 5) % vocabulary);
  auto writer = base::value_or_throw(
      data::IndexedTokensWriter::create(folder / "tokens", data::TokenType::int32));
  writer.append_document(tokens);
  writer.finish();
  base::write_file_durably(folder / "probe.json",
                           "[[5, 4, 3, 2, 1, 0, 7], [9, 8, 60, 2, 2, 5, 5]]");
}

struct Layout {
  int pipeline = 1;
  int tensor = 1;
};
/// One to train with, and another one to go on with.
struct Layouts {
  Layout first;
  Layout second;
};
Layouts layouts() {
  switch (mpi().world_size()) {
    case 2:
      return {{2, 1}, {1, 2}};
    case 4:
      return {{2, 2}, {1, 1}};
    case 8:
      return {{2, 2}, {1, 4}};
    default:
      return {};
  }
}

constexpr std::int64_t first_steps = 4;

config::Config config_for(const SharedFolder& folder, const fs::path& run, Layout layout,
                          std::int64_t steps) {
  const auto tokens = (folder / "tokens").string();
  const std::vector<std::string> settings{
      "run.directory=" + run.string(),
      "run.binding=none",
      "data.train=" + tokens,
      "data.validation=" + tokens,
      "model.architecture=qwen3",
      base::format("model.vocab_size={}", vocabulary),
      "model.hidden_size=32",
      "model.intermediate_size=48",
      "model.num_hidden_layers=2",
      "model.num_attention_heads=4",
      "model.num_key_value_heads=4",
      "model.head_dim=8",
      "train.sequence_length=10",
      "train.global_batch=16",
      base::format("train.steps={}", steps),
      "train.eval_every=2",
      "train.eval_batches=2",
      "optimizer.learning_rate=0.003",
      "optimizer.clip_norm=0.5",
      "checkpoint.every_steps=2",
      // Both ways of saving, the first of them while training waits.
      base::format("checkpoint.asynchronous={}", steps > first_steps),
      "numerics.threads=1",
      "numerics.precision=bf16",
      "numerics.peak_flops=1e12",
      "parallel.zero_level=1",
      base::format("parallel.pipeline={}", layout.pipeline),
      base::format("parallel.tensor={}", layout.tensor),
  };
  return base::value_or_throw(
      config::Config::resolve({.files = {}, .environment = {}, .settings = settings}));
}

runtime::Session session_on(std::unique_ptr<device::Kernels> kernels, Layout layout) {
  runtime::JoinOptions options;
  options.arrangement.pipeline = layout.pipeline;
  options.arrangement.tensor = layout.tensor;
  options.timeout_seconds = 60;
  options.binding = runtime::BindingRule::none;
  runtime::Session session{std::move(kernels), runtime::join(mpi(), options, {})};
  runtime::use_staged_groups(session.kernels->device(), session.cluster);
  return session;
}

/// Losses and norms of all steps and evaluations so far, in the text of metrics.jsonl.
std::vector<std::string> numbers_of(const fs::path& run) {
  std::vector<std::string> numbers;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
    if (!json.contains("loss")) continue;
    numbers.push_back(base::format("{} {} {} {}", json.at("kind").get<std::string>(),
                                   json.at("step").dump(), json.at("loss").dump(),
                                   json.contains("grad_norm") ? json["grad_norm"].dump() : ""));
  }
  return numbers;
}

using MakeKernels = std::function<std::unique_ptr<device::Kernels>()>;

/// Trains, goes on in another layout, evaluates and probes. The loss of all held-out samples.
double whole_life(const SharedFolder& folder, const std::string& name, const MakeKernels& make) {
  const auto run = folder / name;
  const auto [first, second] = layouts();
  {
    still_going(name + " begins");
    auto session = session_on(make(), first);
    const auto config = config_for(folder, run, first, first_steps);
    CHECK(train::Trainer(config, session).run() == base::ExitCode::done);
  }
  still_going(name + " goes on");
  auto session = session_on(make(), second);
  const auto config = config_for(folder, run, second, 6);
  CHECK(train::Trainer(config, session).run() == base::ExitCode::done);
  still_going(name + " is looked at");
  const auto evaluation = inference::evaluate_weights(run, config, session);
  inference::probe({run, folder / "probe.json", folder / (name + ".safetensors"), true}, config,
                   session);
  return evaluation.loss;
}

std::string bytes_of(const fs::path& file) {
  return base::value_or_throw(base::read_text_file(file, base::ExitCode::internal));
}

}  // namespace

TEST_CASE("runs on a simulated GPU have the host's numbers, also after a change of layout") {
  SharedFolder folder;
  write_data(folder);
  folder.wait();
  const auto cpu = [] { return device::make_cpu_kernels(1); };
  const auto expected = whole_life(folder, "host", cpu);
  const auto found =
      whole_life(folder, "simulated", [&] { return std::make_unique<SimulatedKernels>(cpu()); });
  folder.wait();
  CHECK(found == expected);
  if (!folder.is_first()) return;
  const auto numbers = numbers_of(folder / "host");
  // Six steps and three evaluations.
  CHECK(numbers.size() == 9);
  CHECK(numbers_of(folder / "simulated") == numbers);
  CHECK(bytes_of(folder / "simulated.safetensors") == bytes_of(folder / "host.safetensors"));
}
