// Steps whose numbers are not finite: they change nothing, and a run ends with what was before
// them.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/data/indexed_tokens.hpp"
#include "trireme/train/launch.hpp"
#include "trireme/train/trainer.hpp"

#include "support/device/operand_kernels.hpp"
#include "support/mpi/world.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <limits>
#include <optional>
#include <set>

using namespace trireme;
using namespace trireme::testing;
namespace fs = std::filesystem;

namespace {

/// The cpu backend, of which gradients of heads go wrong in some steps: as by a card's bit flip.
class BrokenKernels final : public device::test::OperandKernels {
 public:
  /// bad: steps from 1, of `parts` gradients each.
  BrokenKernels(std::set<int> bad, int parts)
      : inner_(device::make_cpu_kernels(1)), bad_(std::move(bad)), parts_(parts) {}

  const char* name() const override { return inner_->name(); }
  device::Device& device() override { return inner_->device(); }
  void start_sum_of_squares(const device::Tensor& x) override { inner_->start_sum_of_squares(x); }
  std::vector<double> finish_sums() override { return inner_->finish_sums(); }
  void synchronize() override { inner_->synchronize(); }

  void cross_entropy_gradient(const device::Tensor& logits, const device::Tensor& targets,
                              std::int64_t first_token, const device::Tensor& lse,
                              float scale) override {
    inner_->cross_entropy_gradient(logits, targets, first_token, lse, scale);
    const int step = 1 + seen_++ / parts_;
    if (bad_.contains(step)) logits.f32()[0] = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  void run(const char*, std::initializer_list<device::test::Operand>, const Body& body) override {
    body(*inner_, [](const device::Tensor& x) { return x; });
  }

  std::unique_ptr<device::Kernels> inner_;
  std::set<int> bad_;
  int parts_;
  int seen_ = 0;
};

/// A folder of all ranks with data, made and removed by the first.
class Folder {
 public:
  Folder() : world_(mpi().make_world({comm::Backend::mpi, 60})) {
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
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { world_->barrier(); }

  const fs::path& path() const { return path_; }
  void wait() { world_->barrier(); }

 private:
  std::unique_ptr<comm::ProcessGroup> world_;
  std::optional<tests::TemporaryFolder> folder_;
  fs::path path_;
};

constexpr int micro_batches = 4;

config::Config config_for(const Folder& folder, const fs::path& run, int skips) {
  const std::vector<std::string> settings{
      "run.directory=" + run.string(),
      "run.binding=none",
      "data.train=" + (folder.path() / "tokens").string(),
      "model.architecture=gpt2",
      "model.vocab_size=61",
      "model.hidden_size=32",
      "model.num_hidden_layers=2",
      "model.num_attention_heads=4",
      "train.sequence_length=10",
      base::format("train.global_batch={}", micro_batches),
      "train.steps=6",
      "optimizer.learning_rate=0.003",
      base::format("optimizer.skip_nonfinite={}", skips),
      "numerics.threads=1",
      "numerics.precision=fp32",
      "numerics.peak_flops=1e12",
      base::format("parallel.pipeline={}", mpi().world_size()),
  };
  return base::value_or_throw(
      config::Config::resolve({.files = {}, .environment = {}, .settings = settings}));
}

/// How a run ends: its exit code, and its last words if it failed.
struct End {
  base::ExitCode code = base::ExitCode::done;
  std::string text;
};

End run_of(const Folder& folder, const fs::path& run, int skips, std::set<int> bad) {
  still_going(run.filename().string());
  runtime::JoinOptions options;
  options.pipeline = mpi().world_size();
  options.timeout_seconds = 60;
  options.binding = runtime::BindingRule::none;
  train::Session session{std::make_unique<BrokenKernels>(std::move(bad), micro_batches),
                         runtime::join(mpi(), options, {})};
  const auto config = config_for(folder, run, skips);
  try {
    return {train::Trainer(config, session).run(), ""};
  } catch (const base::Error& error) {
    return {error.code(), error.what()};
  }
}

/// Steps of metrics.jsonl's lines of a kind, or of an event.
std::vector<std::int64_t> steps_of(const fs::path& run, const std::string& what) {
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

using Steps = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a step that is not finite changes nothing, and the run ends with what was before it") {
  Folder folder;
  const auto run = folder.path() / "run";
  const auto end = run_of(folder, run, 0, {3});
  folder.wait();
  CHECK(end.code == base::ExitCode::checkpoint);
  CAPTURE(end.text);
  CHECK(end.text.find("at step 3") != std::string::npos);
  CHECK(end.text.find("step 2 is saved") != std::string::npos);
  CHECK(steps_of(run, "save") == Steps{2});
  // What was saved is good: the run goes on from it to its end.
  CHECK(run_of(folder, run, 0, {}).code == base::ExitCode::done);
  folder.wait();
  CHECK(steps_of(run, "train") == Steps{1, 2, 3, 4, 5, 6});
}

TEST_CASE("as many steps in a row as are allowed are skipped, and one more ends the run") {
  Folder folder;
  const auto run = folder.path() / "skips";
  CHECK(run_of(folder, run, 2, {2, 3, 5}).code == base::ExitCode::done);
  folder.wait();
  CHECK(steps_of(run, "skipped") == Steps{2, 3, 5});
  CHECK(steps_of(run, "train") == Steps{1, 4, 6});
  const auto too_many = folder.path() / "too many";
  const auto end = run_of(folder, too_many, 2, {2, 3, 4});
  folder.wait();
  CHECK(end.code == base::ExitCode::checkpoint);
  CHECK(end.text.find("at step 4") != std::string::npos);
  CHECK(steps_of(too_many, "skipped") == Steps{2, 3});
  CHECK(steps_of(too_many, "save") == Steps{3});
}

TEST_CASE("a first step that is not finite leaves no checkpoint") {
  Folder folder;
  const auto run = folder.path() / "first";
  const auto end = run_of(folder, run, 0, {1});
  folder.wait();
  CHECK(end.code == base::ExitCode::checkpoint);
  CHECK(end.text.find("no step is saved") != std::string::npos);
  CHECK(steps_of(run, "save").empty());
}
