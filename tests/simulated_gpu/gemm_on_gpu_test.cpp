// SPDX-License-Identifier: Apache-2.0
// How the cuda backend's GEMMs are chosen, kept and done without: its own code, over a stand-in
// of cuBLASLt that offers candidates of which some are slow, some fail and some are refused.
#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"

#include "device/cuda/gemm/operands.hpp"
#include "device/cuda/gemm/tuning_cache.hpp"
#include "simulated_gpu/gemm_layer.hpp"
#include "simulated_gpu/watched_gpu.hpp"
#include "unit/device/gemm/cublaslt_gemm.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>

using namespace trireme;
using namespace trireme::device;
using namespace trireme::device::test;

namespace {

/// The layer on the GPU is the layer of the reference.
void check_results(const GemmLayer& layer, std::int64_t shift = 0) {
  const GemmLayer reference(shift);
  reference.run(*make_reference_kernels());
  const auto found = layer.results();
  const auto wanted = reference.results();
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    CAPTURE(at);
    CHECK(relative_error(found[at], wanted[at]) < 1e-2);
  }
}

std::string target_of(const GemmTuning& tuning) {
  return base::parse_json(tuning.text(), "choices")->at("target").get<std::string>();
}

/// The name of y = x * transpose(w).
std::string plain_gemm(const GemmLayer& layer) {
  return cuda::gemm_of({GemmCall::Kind::forward, layer.x(), layer.w(), {}, {}, layer.y()})
      .descriptor.text();
}

/// Candidates that the stand-in offers for it to who promises much workspace.
std::vector<cublasLtMatmulHeuristicResult_t> candidates_of_plain_gemm() {
  const auto* const library = base::value_or_throw(cuda::load_cublaslt());
  CublasltGemm gemm(*library, {out, rows, in, CUBLAS_OP_T, CUBLAS_OP_N, CUDA_R_16BF, CUDA_R_16BF});
  gemm.prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{1} << 40)
      .prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t{16})
      .prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t{16});
  REQUIRE(gemm.ask() == CUBLAS_STATUS_SUCCESS);
  return gemm.ways;
}

}  // namespace

TEST_CASE("products of a layer on a GPU are those of the reference, with nothing chosen") {
  const Watch watch;
  Gpu gpu;
  const GemmLayer layer;
  layer.run(gpu.kernels());
  check_results(layer);
  // Each of the five epilogues was computed on the way, and as the library ranks its candidates.
  CHECK(watch.with_epilogue() == 5);
  CHECK(watch.all() == 7);
  CHECK(watch.slow() == 7);
  watch.check_use();
}

TEST_CASE("timing chooses among what the library offers, and what was chosen is used") {
  Watch watch;
  Gpu gpu;
  const GemmLayer layer;
  const auto calls = layer.calls();
  CHECK(gpu.tuning().choose(calls) == 7);
  CHECK(gpu.tuning().choose(calls) == 0);
  const auto slow_before = watch.slow();
  CHECK(slow_before > 0);
  const auto all_before = watch.all();
  layer.run(gpu.kernels());
  CHECK(watch.all() == all_before + 7);
  CHECK(watch.slow() == slow_before);
  check_results(layer);
  watch.check_use();
}

TEST_CASE("another rank that adopts the choices computes the same bits") {
  const Watch watch;
  Gpu one;
  const GemmLayer first;
  one.tuning().choose(first.calls());
  const std::vector<std::string> texts{one.tuning().text()};
  first.run(one.kernels());

  Gpu other;
  REQUIRE(other.tuning().adopt(texts).ok());
  CHECK(other.tuning().text() == texts.front());
  CHECK(other.tuning().file_name() == one.tuning().file_name());
  const auto slow_before = watch.slow();
  const GemmLayer second;
  second.run(other.kernels());
  CHECK(watch.slow() == slow_before);
  CHECK(second.results() == first.results());
  watch.check_use();
}

TEST_CASE("a choice that the library does not take is passed over") {
  const Watch watch;
  const GemmLayer layer;
  const auto run_with = [&](const cuda::Algorithm& algorithm) {
    Gpu gpu;
    cuda::TuningCache cache(target_of(gpu.tuning()));
    cache.add(plain_gemm(layer), algorithm);
    REQUIRE(gpu.tuning().adopt(std::vector<std::string>{cache.text()}).ok());
    CHECK(gpu.tuning().text() == cache.text());
    const auto slow_before = watch.slow();
    gpu.kernels().issue(LinearForward{layer.x(), layer.w(), {}, layer.y()});
    return watch.slow() - slow_before;
  };
  const auto as_kept = [](const cublasLtMatmulHeuristicResult_t& candidate) {
    return std::bit_cast<cuda::Algorithm>(candidate.algo);
  };
  const auto candidates = candidates_of_plain_gemm();
  std::uint64_t most_workspace = 0;
  for (const auto& candidate : candidates)
    most_workspace = std::max(most_workspace, candidate.workspaceSize);
  for (const auto& candidate : candidates) {
    const bool usable =
        candidate.state == CUBLAS_STATUS_SUCCESS && candidate.workspaceSize < most_workspace;
    if (usable) continue;
    CAPTURE(candidate.workspaceSize);
    // The heuristics' first instead, which is slow.
    CHECK(run_with(as_kept(candidate)) == 1);
  }
  // The last that fits: taken.
  CHECK(run_with(as_kept(candidates[candidates.size() - 2])) == 0);
  auto damaged = as_kept(candidates[candidates.size() - 2]);
  damaged[2] ^= 1U;
  CHECK(run_with(damaged) == 1);
  CHECK(run_with({}) == 1);
  watch.check_use();
}

TEST_CASE("what the library refuses to do on the way is done by own kernels") {
  const auto epilogue =
      GENERATE(CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
               CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADB);
  const bool offered = GENERATE(false, true);
  const bool timed = GENERATE(false, true);
  CAPTURE(epilogue, offered, timed);
  const Watch watch;
  // Offered, it fails when it is asked for.
  (offered ? controls().failing_epilogue : controls().refused_epilogue) = epilogue;
  Gpu gpu;
  const GemmLayer layer;
  if (timed) gpu.tuning().choose(layer.calls());
  const auto all_before = watch.all();
  const auto with_epilogue_before = watch.with_epilogue();
  layer.run(gpu.kernels());
  check_results(layer);
  // A gelu with a bias falls back to a bias.
  const std::uint64_t done = epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ? 5 : 4;
  CHECK(watch.with_epilogue() - with_epilogue_before == done);
  CHECK(watch.all() - all_before == 7);
  watch.check_use();
}

TEST_CASE("a bias that the library's kernels cannot read in packs is added by own kernels") {
  const Watch watch;
  Gpu gpu;
  const GemmLayer layer(1);
  gpu.tuning().choose(layer.calls());
  layer.run(gpu.kernels());
  check_results(layer, 1);
  watch.check_use();
}
