// SPDX-License-Identifier: Apache-2.0
// `trireme probe` on the shortest sequences that there are.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/huggingface/safetensors.hpp"

#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace trireme;
using namespace trireme::tests;

namespace {

struct Probed {
  TemporaryFolder folder;
  huggingface::SafetensorsFolder file;

  static huggingface::SafetensorsFolder run(const TemporaryFolder& folder, const char* backend,
                                            const std::string& tokens) {
    const auto in = folder.path() / "tokens.json";
    const auto out = folder.path() / "out.safetensors";
    base::write_file_durably(in, tokens);
    done_on_ranks(2, {"-q", "probe", "--weights", golden_model("llama-grouped-scaled").string(),
                      "--tokens", in.string(), "--out", out.string(), "--gradients", "--backend",
                      backend, "--tensor-parallel", "2"});
    return base::value_or_throw(huggingface::SafetensorsFolder::open(out));
  }
  Probed(const char* backend, const std::string& tokens) : file(run(folder, backend, tokens)) {}

  std::vector<float> values(const std::string& name) const {
    const auto* entry = file.find(name);
    REQUIRE(entry != nullptr);
    std::vector<float> values(static_cast<std::size_t>(layout::element_count(entry->shape)));
    const device::Tensor flat(values.data(), device::DType::f32,
                              {static_cast<std::int64_t>(values.size())});
    base::success_or_throw(file.read_box(name, layout::whole(entry->shape), flat));
    return values;
  }
};

bool all_zero(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0.0F; });
}

}  // namespace

TEST_CASE("a backend that this node or build lacks ends in exit code 4 and says what to do") {
  const TemporaryFolder folder;
  const auto in = folder.path() / "tokens.json";
  base::write_file_durably(in, "[[5, 6, 7]]");
  const auto end = on_ranks(
      1, {"probe", "--weights", golden_model("llama-grouped-scaled").string(), "--tokens",
          in.string(), "--out", (folder.path() / "out.safetensors").string(), "--backend", "cuda"});
  CHECK(end.exit_code == 4);
  INFO(end.err);
  CHECK(says(end.err, "numerics.backend = cuda"));
  CHECK(says(end.err, "use "));
}

TEST_CASE("probe takes sequences of one token, whose loss is the mean of nothing") {
  for (const char* backend : {"cpu", "reference"}) {
    const Probed probed(backend, "[[5], [6], [7]]");
    CHECK(probed.file.find("logits")->shape == layout::Shape{3, 1, 71});
    CHECK_FALSE(all_zero(probed.values("logits")));
    CHECK(std::isnan(probed.values("loss").front()));
    for (const auto& entry : probed.file.tensors()) {
      if (entry.name.starts_with("grad/")) CHECK(all_zero(probed.values(entry.name)));
    }
  }
}

TEST_CASE("probe finds no gradient of queries that see one key") {
  for (const char* backend : {"cpu", "reference"}) {
    const Probed probed(backend, "[[5, 6], [7, 8]]");
    for (const std::string layer : {"0", "1"}) {
      const auto prefix = "grad/model.layers." + layer + ".self_attn.";
      CHECK(all_zero(probed.values(prefix + "q_proj.weight")));
      CHECK(all_zero(probed.values(prefix + "k_proj.weight")));
      CHECK_FALSE(all_zero(probed.values(prefix + "v_proj.weight")));
    }
  }
}
