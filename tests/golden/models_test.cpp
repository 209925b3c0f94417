// SPDX-License-Identifier: Apache-2.0
// `trireme probe` against what transformers computed (scripts/golden-models): logits, loss and the
// gradient of every parameter, at several layouts and with both host backends.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/huggingface/safetensors.hpp"

#include "support/program.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr double tolerance = 1e-4;

struct Layout {
  int tensor = 1;
  int pipeline = 1;
  int data = 1;
  const char* backend = "cpu";
  bool sequence_parallel = false;
};

std::vector<float> values(const huggingface::SafetensorsFolder& file,
                          const huggingface::SafetensorsEntry& entry) {
  std::vector<float> values(static_cast<std::size_t>(layout::element_count(entry.shape)));
  const device::Tensor flat(values.data(), device::DType::f32,
                            {static_cast<std::int64_t>(values.size())});
  base::success_or_throw(file.read_box(entry.name, layout::whole(entry.shape), flat));
  return values;
}

/// Largest difference as a share of the largest value expected; infinite for what is no number.
double distance(const std::vector<float>& found, const std::vector<float>& expected) {
  double away = 0;
  double scale = 0;
  for (std::size_t index = 0; index < expected.size(); ++index) {
    const double difference = std::abs(static_cast<double>(found[index]) - expected[index]);
    away = std::isfinite(difference) ? std::max(away, difference) : INFINITY;
    scale = std::max(scale, std::abs(static_cast<double>(expected[index])));
  }
  return away / scale;
}

void run_probe(const std::string& model, const Layout& layout, const std::filesystem::path& out) {
  const auto folder = base::format("{}/tests/golden/models/{}", TRIREME_SOURCE_DIR, model);
  const int ranks = layout.tensor * layout.pipeline * layout.data;
  const auto end =
      run_program({.program = TRIREME_SOURCE_DIR "/tests/support/mpirun",
                   .arguments = {std::to_string(ranks), TRIREME_EXECUTABLE, "probe", "--gradients",
                                 "--weights", folder, "--tokens", folder + "/tokens.json", "--out",
                                 out.string(), "--backend", layout.backend, "--set",
                                 base::format("parallel.tensor={}", layout.tensor),
                                 "--pipeline-parallel", std::to_string(layout.pipeline), "--set",
                                 base::format("parallel.sequence={}", layout.sequence_parallel)},
                   .timeout_seconds = 120});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
}

void compare(const std::string& model, const Layout& layout) {
  CAPTURE(layout.tensor, layout.pipeline, layout.data, layout.backend, layout.sequence_parallel);
  const TemporaryFolder folder;
  const auto out = folder.path() / "probe.safetensors";
  run_probe(model, layout, out);
  const auto found = base::value_or_throw(huggingface::SafetensorsFolder::open(out));
  const auto expected = base::value_or_throw(huggingface::SafetensorsFolder::open(
      base::format("{}/tests/golden/models/{}/expected.safetensors", TRIREME_SOURCE_DIR, model)));
  REQUIRE(found.tensors().size() == expected.tensors().size());
  REQUIRE(expected.tensors().size() > 12);
  for (const auto& entry : expected.tensors()) {
    CAPTURE(entry.name);
    const auto* mine = found.find(entry.name);
    REQUIRE(mine != nullptr);
    CHECK(mine->dtype == huggingface::SafetensorsType::f32);
    REQUIRE(mine->shape == entry.shape);
    CHECK(distance(values(found, *mine), values(expected, entry)) <= tolerance);
  }
}

void compare_all(const std::string& model, const std::vector<Layout>& layouts) {
  for (const auto& layout : layouts) compare(model, layout);
}

}  // namespace

TEST_CASE("gpt2 with tied embeddings equals transformers at every layout") {
  compare_all("gpt2-tied", {{1, 1, 1, "reference"},
                            {1, 1, 1},
                            {2, 1, 1},
                            {1, 2, 1},
                            {4, 1, 1},
                            {2, 2, 1, "reference"},
                            // Three sequences for two ranks.
                            {1, 1, 2},
                            {2, 1, 2}});
}

TEST_CASE("gpt2 with a head of its own and odd sizes equals transformers at every layout") {
  compare_all("gpt2-untied-odd",
              {{1, 1, 1, "reference"}, {1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {2, 2, 1}, {1, 2, 2}});
}

TEST_CASE("llama with grouped heads and scaled rotary embedding equals transformers") {
  compare_all("llama-grouped-scaled", {{1, 1, 1, "reference"},
                                       {1, 1, 1},
                                       {2, 1, 1, "cpu", true},
                                       {1, 2, 1},
                                       {4, 1, 1, "reference"},
                                       {2, 2, 1, "cpu", true}});
}

TEST_CASE("llama with one key head and tied embeddings equals transformers") {
  compare_all("llama-one-key-head-tied",
              {{1, 1, 1, "reference"}, {1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {4, 1, 1}, {2, 2, 1}});
}

TEST_CASE("qwen3 with heads wider than its share equals transformers") {
  compare_all("qwen3-wide-heads", {{1, 1, 1, "reference"},
                                   {1, 1, 1},
                                   {2, 1, 1, "cpu", true},
                                   {1, 2, 1},
                                   {4, 1, 1},
                                   {2, 2, 1, "reference"}});
}

TEST_CASE("qwen3 with tied embeddings equals transformers") {
  compare_all("qwen3-tied",
              {{1, 1, 1, "reference"}, {1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {4, 1, 1}, {2, 2, 1}});
}
