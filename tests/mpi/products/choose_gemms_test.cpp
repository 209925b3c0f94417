// SPDX-License-Identifier: Apache-2.0
#include "train/choose_gemms.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/engine/measure.hpp"

#include "device/cuda/gemm/operands.hpp"
#include "device/cuda/gemm/tuning_cache.hpp"
#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

using namespace trireme;
using namespace trireme::testing;
using device::cuda::Algorithm;
using device::cuda::gemm_of;
using device::cuda::TuningCache;
using trireme::tests::TemporaryFolder;

namespace {

/// Timing whose winner depends on the rank, and on the run: as on GPUs of one kind, where ways are
/// nearly as fast.
class PretendedTuning final : public device::GemmTuning {
 public:
  explicit PretendedTuning(std::uint64_t mine) : mine_(mine), choices_("pretended GPU") {}

  int choose(std::span<const device::GemmCall> calls) override {
    int made = 0;
    for (const auto& call : calls) {
      const auto name = gemm_of(call).descriptor.text();
      if (choices_.find(name) != nullptr) continue;
      choices_.add(name, Algorithm{mine_});
      ++made;
    }
    return made;
  }
  std::string text() const override { return choices_.text(); }
  std::string news() const override { return choices_.news(); }
  std::size_t size() const override { return choices_.size(); }
  base::Status adopt(std::span<const std::string> texts) override { return choices_.adopt(texts); }
  std::string file_name() const override { return "products.json"; }

 private:
  std::uint64_t mine_;
  TuningCache choices_;
};

/// Calls of different shapes, those from `first` on.
std::vector<device::GemmCall> some_calls(device::Arena& arena, int first, int count) {
  std::vector<device::GemmCall> calls;
  for (int index = first; index < first + count; ++index) {
    const std::int64_t width = 64 * (index + 1);
    calls.push_back({device::GemmCall::Kind::forward,
                     arena.allocate(device::DType::bf16, {32, width}),
                     arena.allocate(device::DType::bf16, {128, width}),
                     {},
                     {},
                     arena.allocate(device::DType::bf16, {32, 128})});
  }
  return calls;
}

/// One folder for all ranks, made and removed by the first.
class SharedFolder {
 public:
  explicit SharedFolder(comm::ProcessGroup& world) : world_(world) {
    if (world.rank() == 0) folder_.emplace();
    path_ = comm::broadcast_bytes(world, folder_ ? folder_->path().string() : "");
  }
  ~SharedFolder() { world_.barrier(); }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  comm::ProcessGroup& world_;
  std::optional<TemporaryFolder> folder_;
  std::filesystem::path path_;
};

bool same_everywhere(comm::ProcessGroup& world, const std::string& text) {
  const auto texts = comm::all_gather_bytes(world, text);
  return std::set<std::string>(texts.begin(), texts.end()).size() == 1;
}

}  // namespace

TEST_CASE("all ranks compute a product in one way, and the next run does as this one") {
  const auto world_owner = mpi().make_world();
  auto& world = *world_owner;
  const SharedFolder folder(world);
  auto arena = device::Arena::measuring(device::Purpose::workspace);
  // Stages have layers of their own: two products that all have, and two of this rank alone.
  auto calls = some_calls(arena, 0, 2);
  for (const auto& own : some_calls(arena, 2 + 2 * world.rank(), 2)) calls.push_back(own);

  PretendedTuning first(100 + static_cast<std::uint64_t>(world.rank()));
  train::choose_gemms(first, calls, {{}, folder.path() / "cache"}, world);
  CHECK(same_everywhere(world, first.text()));
  TuningCache cache("pretended GPU");
  REQUIRE(cache.merge(first.text()).ok());
  CHECK(cache.size() == static_cast<std::size_t>(2 + 2 * world.size()));
  // The first rank's choice counts, although all ranks timed.
  const auto* const shared = cache.find(gemm_of(calls.front()).descriptor.text());
  REQUIRE(shared != nullptr);
  CHECK(shared->front() == 100);

  PretendedTuning second(200 + static_cast<std::uint64_t>(world.rank()));
  train::choose_gemms(second, calls, {{}, folder.path() / "cache"}, world);
  CHECK(second.text() == first.text());
}

TEST_CASE("a file of choices that is damaged is as good as none") {
  const auto world_owner = mpi().make_world();
  auto& world = *world_owner;
  const SharedFolder folder(world);
  const auto path = folder.path() / "products.json";
  auto arena = device::Arena::measuring(device::Purpose::workspace);
  const auto calls = some_calls(arena, 0, 2);
  if (world.rank() == 0) base::write_file_durably(path, "{\"format\": ");
  world.barrier();
  PretendedTuning tuning(7);
  train::choose_gemms(tuning, calls, {{}, folder.path()}, world);
  CHECK(same_everywhere(world, tuning.text()));
  // It has been replaced by a good one.
  CHECK(base::value_or_throw(base::read_text_file(path)) == tuning.text());
}

TEST_CASE("a list of any length reaches all ranks and is kept whole") {
  const auto world_owner = mpi().make_world();
  auto& world = *world_owner;
  const SharedFolder folder(world);
  auto arena = device::Arena::measuring(device::Purpose::workspace);
  constexpr int many = 300;  // 60 KiB of text
  const auto calls = some_calls(arena, 0, many);
  PretendedTuning first(100 + static_cast<std::uint64_t>(world.rank()));
  train::choose_gemms(first, calls, {{}, folder.path()}, world);
  CHECK(first.size() == many);
  CHECK(same_everywhere(world, first.text()));
  // Another model of the same user: his list grows.
  const auto more = some_calls(arena, many, 100);
  PretendedTuning second(200 + static_cast<std::uint64_t>(world.rank()));
  train::choose_gemms(second, more, {{}, folder.path()}, world);
  CHECK(second.size() == many + 100);
  CHECK(same_everywhere(world, second.text()));
  PretendedTuning third(300);
  train::choose_gemms(third, calls, {{}, folder.path()}, world);
  CHECK(third.text() == second.text());
  CHECK(base::value_or_throw(base::read_text_file(folder.path() / "products.json")) ==
        second.text());
}

TEST_CASE("a run computes as it began, whatever has become of the user's list") {
  const auto world_owner = mpi().make_world();
  auto& world = *world_owner;
  const SharedFolder folder(world);
  const auto run = folder.path() / "run/products.json";
  auto arena = device::Arena::measuring(device::Purpose::workspace);
  const auto calls = some_calls(arena, 0, 3);
  PretendedTuning begun(1);
  train::choose_gemms(begun, calls, {run, folder.path() / "one"}, world);
  // Another user's list says something else, and knows more.
  auto more = calls;
  for (const auto& call : some_calls(arena, 3, 1)) more.push_back(call);
  PretendedTuning other(2);
  train::choose_gemms(other, more, {{}, folder.path() / "two"}, world);
  PretendedTuning resumed(3);
  train::choose_gemms(resumed, more, {run, folder.path() / "two"}, world);
  TuningCache cache("pretended GPU");
  REQUIRE(cache.merge(resumed.text()).ok());
  for (const auto& call : calls) {
    CHECK(cache.find(gemm_of(call).descriptor.text())->front() == 1);
  }
  CHECK(cache.find(gemm_of(more.back()).descriptor.text())->front() == 2);
  world.barrier();  // The first rank has written.
  CHECK(base::value_or_throw(base::read_text_file(run)) == resumed.text());
}

TEST_CASE("a damaged list of a run is replaced, and the user's stays") {
  const auto world_owner = mpi().make_world();
  auto& world = *world_owner;
  const SharedFolder folder(world);
  const auto run = folder.path() / "run.json";
  const auto cache = folder.path() / "products.json";
  auto arena = device::Arena::measuring(device::Purpose::workspace);
  const auto calls = some_calls(arena, 0, 3);
  PretendedTuning first(1);
  train::choose_gemms(first, calls, {{}, folder.path()}, world);
  if (world.rank() == 0) base::write_file_durably(run, "{\"format\": ");
  world.barrier();
  PretendedTuning second(2);
  train::choose_gemms(second, calls, {run, folder.path()}, world);
  CHECK(second.text() == first.text());
  world.barrier();  // The first rank has written.
  CHECK(base::value_or_throw(base::read_text_file(run)) == first.text());
  CHECK(base::value_or_throw(base::read_text_file(cache)) == first.text());
}

TEST_CASE("without a cache folder products are timed in every run") {
  const auto world_owner = mpi().make_world();
  auto& world = *world_owner;
  auto arena = device::Arena::measuring(device::Purpose::workspace);
  const auto calls = some_calls(arena, 0, 1);
  PretendedTuning tuning(7);
  train::choose_gemms(tuning, calls, {}, world);
  TuningCache cache("pretended GPU");
  REQUIRE(cache.merge(tuning.text()).ok());
  CHECK(cache.size() == 1);
}

TEST_CASE("a step's products are known before it runs") {
  engine::EngineOptions options;
  options.model = tiny(model::Architecture::gpt2);
  options.schedule.micro_batch = 2;
  options.schedule.sequence_length = 8;
  const auto calls = engine::gemm_calls_of(options);
  using Kind = device::GemmCall::Kind;
  const auto count = [&](Kind kind) {
    return std::count_if(calls.begin(), calls.end(),
                         [&](const auto& call) { return call.kind == kind; });
  };
  const auto layers = options.model.num_hidden_layers;
  // A step's and an evaluation's gelus, one a layer; a backward of each in the step.
  CHECK(count(Kind::gelu_forward) == 2 * layers);
  CHECK(count(Kind::backward_gelu) == layers);
  // qkv, attention's output, both of the mlp, and the head.
  CHECK(count(Kind::backward_weight) == 4 * layers + 1);
  for (const auto& call : calls) CHECK(gemm_of(call).descriptor.k > 0);
}

TEST_CASE("what a layer computes again for backward is only what backward needs") {
  engine::EngineOptions options;
  options.model = tiny(model::Architecture::llama);
  options.schedule.micro_batch = 2;
  options.schedule.sequence_length = 8;
  const auto forwards = [&](layers::Recompute recompute) {
    options.memory.recompute = recompute;
    const auto calls = engine::gemm_calls_of(options);
    return std::count_if(calls.begin(), calls.end(), [](const auto& call) {
      return call.kind == device::GemmCall::Kind::forward;
    });
  };
  // Queries, keys and values; attention's output; gate and up. Not down.
  CHECK(forwards(layers::Recompute{layers::Activation::layer}) - forwards(layers::Recompute{}) ==
        3 * options.model.num_hidden_layers);
}

TEST_CASE("products in FP8 are among a step's products") {
  engine::EngineOptions options;
  options.model = tiny(model::Architecture::gpt2);
  options.model.hidden_size = 64;
  options.model.intermediate_size = 64;
  options.model.num_attention_heads = 4;
  options.model.num_key_value_heads = 4;
  options.model.head_dim = 16;
  options.schedule.micro_batch = 2;
  options.schedule.sequence_length = 8;
  options.numerics.dtype = device::DType::bf16;
  options.numerics.linear_forward = layers::LinearForward::e4m3;
  const auto calls = engine::gemm_calls_of(options);
  int quantised = 0;
  for (const auto& call : calls) {
    if (call.kind != device::GemmCall::Kind::quantised_forward) continue;
    ++quantised;
    CHECK(device::cuda::gemm_of(call).descriptor.in == device::DType::e4m3);
  }
  // Copies of a step and of an evaluation.
  CHECK(quantised == 2 * 4 * options.model.num_hidden_layers);
}
