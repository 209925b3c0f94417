// SPDX-License-Identifier: Apache-2.0
// How the cuda backend's GEMMs are chosen, kept and done without: its own code, over a stand-in
// of cuBLASLt that offers candidates of which some are slow, some fail and some are refused.
#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/device/arena.hpp"

#include "device/cuda/gemm/operands.hpp"
#include "device/cuda/gemm/tuning_cache.hpp"
#include "simulated_gpu/watched_gpu.hpp"
#include "unit/device/gemm/cublaslt_gemm.hpp"
#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <limits>

using namespace trireme;
using namespace trireme::device;
using namespace trireme::device::test;

namespace {

constexpr std::int64_t rows = 24;
constexpr std::int64_t in = 32;
constexpr std::int64_t out = 48;

/// The operands of a layer's GEMMs, from one block: addresses are multiples of 128,
/// but for the bias, which lies `shift` elements further.
class Layer {
 public:
  explicit Layer(std::int64_t shift = 0)
      : arena_(Arena::host(Purpose::activations, std::size_t{1} << 20)),
        x_(add(DType::bf16, {rows, in})),
        w_(add(DType::bf16, {out, in})),
        bias_(add(DType::bf16, {out + shift}).slice(0, shift, out)),
        wide_(add(DType::bf16, {rows, out})),
        y_(add(DType::bf16, {rows, out})),
        down_(add(DType::bf16, {in, out})),
        d_wide_(add(DType::bf16, {rows, out})),
        dw_(add(DType::f32, {out, in})),
        d_bias_(add(DType::f32, {out})) {}

  /// Every GEMM of the layer: of each epilogue one, and some without.
  void run(Kernels& kernels) const {
    kernels.issue(LinearForward{x_, w_, bias_, y_});
    kernels.issue(LinearGeluForward{x_, w_, {}, wide_, y_});
    kernels.issue(LinearGeluForward{x_, w_, bias_, wide_, y_});
    kernels.issue(LinearBackwardGelu{x_, down_, wide_, d_wide_});
    kernels.issue(LinearBackwardWeight{d_wide_, x_, dw_, d_bias_});
    kernels.issue(LinearBackwardInput{y_, w_, x_});
    kernels.issue(LinearForward{x_, w_, {}, y_});
  }
  std::vector<GemmCall> calls() const {
    std::vector<GemmCall> all;
    run(*make_gemm_collecting_kernels(all));
    return all;
  }
  const Tensor& x() const { return x_; }
  const Tensor& w() const { return w_; }
  const Tensor& y() const { return y_; }
  static std::vector<float> values(const Tensor& tensor) {
    TestTensor copy(tensor.dtype(), {tensor.element_count()});
    make_reference_kernels()->issue(Copy{tensor.reshape({tensor.element_count()}), copy});
    return copy.values();
  }
  /// Results of all GEMMs, one after another.
  std::vector<std::vector<float>> results() const {
    std::vector<std::vector<float>> all;
    for (const auto& each : {x_, wide_, y_, d_wide_, dw_, d_bias_}) all.push_back(values(each));
    return all;
  }

 private:
  Tensor add(DType type, std::initializer_list<std::int64_t> shape) {
    const auto tensor = arena_.allocate(type, shape);
    const auto count = tensor.element_count();
    TestTensor numbers(type, {count});
    numbers.randomise(static_cast<std::uint64_t>(++added_), 0.5F);
    make_reference_kernels()->issue(Copy{numbers, tensor.reshape({count})});
    return tensor;
  }

  int added_ = 0;
  Arena arena_;
  Tensor x_, w_, bias_, wide_, y_, down_, d_wide_, dw_, d_bias_;
};

/// The layer on the GPU is the layer of the reference.
void check_results(const Layer& layer, std::int64_t shift = 0) {
  const Layer reference(shift);
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
std::string plain_gemm(const Layer& layer) {
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
  const Layer layer;
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
  const Layer layer;
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
  const Layer first;
  one.tuning().choose(first.calls());
  const std::vector<std::string> texts{one.tuning().text()};
  first.run(one.kernels());

  Gpu other;
  REQUIRE(other.tuning().adopt(texts).ok());
  CHECK(other.tuning().text() == texts.front());
  CHECK(other.tuning().file_name() == one.tuning().file_name());
  const auto slow_before = watch.slow();
  const Layer second;
  second.run(other.kernels());
  CHECK(watch.slow() == slow_before);
  CHECK(second.results() == first.results());
  watch.check_use();
}

TEST_CASE("a choice that the library does not take is passed over") {
  const Watch watch;
  const Layer layer;
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
  const Layer layer;
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
  const Layer layer(1);
  gpu.tuning().choose(layer.calls());
  layer.run(gpu.kernels());
  check_results(layer, 1);
  watch.check_use();
}

namespace {

/// Operands of a GEMM of FP8 copies, and what it should be.
class Fp8Layer {
 public:
  Quantised quantised(std::int64_t height, std::uint64_t stream) {
    const auto numbers = random(height, in, stream);
    const auto magnitude = arena_.allocate(DType::f32, {1});
    const Quantised copy{arena_.allocate(DType::e4m3, {height, in}),
                         arena_.allocate(DType::f32, {1})};
    reference_->issue(LargestMagnitude{numbers, magnitude});
    reference_->issue(Quantise{numbers, magnitude, copy});
    return copy;
  }
  Tensor random(std::int64_t height, std::int64_t width, std::uint64_t stream) {
    TestTensor numbers(DType::bf16, {height, width});
    numbers.randomise(stream);
    const auto tensor = arena_.allocate(DType::bf16, {height, width});
    reference_->issue(Copy{numbers, tensor});
    return tensor;
  }
  void check(Gpu& gpu, const Tensor& bias) const {
    gpu.kernels().issue(LinearForwardQuantised{x, w, bias, y});
    reference_->issue(LinearForwardQuantised{x, w, bias, wanted_});
    CHECK(relative_error(Layer::values(y), Layer::values(wanted_)) < 1e-2);
  }

 private:
  std::unique_ptr<Kernels> reference_ = make_reference_kernels();
  Arena arena_ = Arena::host(Purpose::activations, std::size_t{1} << 20);
  Tensor wanted_ = arena_.allocate(DType::bf16, {rows, out});

 public:
  const Quantised x = quantised(rows, 1);
  const Quantised w = quantised(out, 2);
  const Tensor y = arena_.allocate(DType::bf16, {rows, out});
};

}  // namespace

TEST_CASE("FP8 products take no memory of their own, and a bias wherever it lies") {
  const Watch watch;
  Fp8Layer layer;
  const auto biases = layer.random(1, out + 3, 3).reshape({out + 3});
  Gpu gpu;
  const auto before = gpu.device().taken_bytes();
  for (const std::int64_t shift : {0, 3}) layer.check(gpu, biases.slice(0, shift, out));
  layer.check(gpu, {});
  CHECK(gpu.device().taken_bytes() == before);
  CHECK(watch.all() == 3);
  CHECK(watch.with_epilogue() == 1);
  watch.check_use();
}

TEST_CASE("products are timed on numbers such as training has, in every type") {
  // A GPU's clock depends on the bits that change: it keeps others on zeros, and on what is not
  // finite.
  Gpu gpu;
  Fp8Layer layer;
  std::vector<GemmCall> quantised;
  make_gemm_collecting_kernels(quantised)->issue(
      LinearForwardQuantised{layer.x, layer.w, {}, layer.y});
  for (const auto& calls : {Layer().calls(), quantised}) {
    controls().smallest_operand = std::numeric_limits<double>::infinity();
    controls().largest_operand = 0;
    CHECK(gpu.tuning().choose(calls) > 0);
    CHECK(controls().smallest_operand > 0.85);
    CHECK(controls().largest_operand < 1.15);
  }
}

TEST_CASE("FP8 products are timed, and the fastest way is kept and taken") {
  Fp8Layer layer;
  const auto bias = layer.random(1, out, 3).reshape({out});
  std::vector<GemmCall> calls;
  const auto recording = make_gemm_collecting_kernels(calls);
  recording->issue(LinearForwardQuantised{layer.x, layer.w, bias, layer.y});
  recording->issue(LinearForwardQuantised{layer.x, layer.w, {}, layer.y});
  Gpu gpu;
  const Watch all;
  CHECK(gpu.tuning().choose(calls) == 2);
  // Some are slow, and were tried.
  CHECK(all.slow() > 0);
  CHECK(gpu.tuning().choose(calls) == 0);
  CHECK(gpu.tuning().text().find("e4m3>bf16") != std::string::npos);
  const Watch chosen;
  layer.check(gpu, bias);
  layer.check(gpu, {});
  CHECK(chosen.slow() == 0);
  CHECK(chosen.all() == 2);
  all.check_use();
  // Another run that adopts the list takes the same candidates.
  Gpu other;
  const std::vector<std::string> texts{gpu.tuning().text()};
  REQUIRE(other.tuning().adopt(texts).ok());
  CHECK(other.tuning().choose(calls) == 0);
}
