// SPDX-License-Identifier: Apache-2.0
// Autotuning: the algorithm of a GEMM is the fastest candidate that the GPU has shown.
#include "device/cuda/gemm/matrix_gemms.hpp"
#include "device/cuda/gemm/plan.hpp"
#include "device/cuda/gemm/scratch.hpp"

#include <algorithm>
#include <limits>

namespace trireme::device::cuda {
namespace {

constexpr int rounds = 5;

}  // namespace

int LinearGemm::choose(std::span<const GemmCall> calls) {
  int made = 0;
  for (const auto& call : calls) {
    if (call.x.element_count() == 0 || call.result.element_count() == 0) continue;
    if (is_of_matrices(call)) {
      for (const auto& gemm : matrix_gemms(call)) {
        if (choose(gemm.descriptor.alone()) == Choice::made) ++made;
      }
      continue;
    }
    if (choose_epilogue(epilogue_variants(call)) == Choice::made) ++made;
  }
  return made;
}

std::optional<LinearGemm::Timed> LinearGemm::fastest_candidate(const GemmDescriptor& descriptor) {
  Plan plan;
  describe(descriptor, plan);
  const auto all = candidates(descriptor, plan);
  if (all.empty()) return std::nullopt;
  GemmScratch scratch(descriptor, stream_);
  const Gemm gemm{descriptor, scratch.operands()};
  std::vector<double> best(all.size(), std::numeric_limits<double>::infinity());
  const auto seconds_of = [&](std::size_t index) {
    const double seconds =
        scratch.seconds_of([&] { check(issue(plan, all[index], gemm), "cublasLtMatmul"); });
    best[index] = std::min(best[index], seconds);
    return seconds;
  };
  const auto candidate = fastest(all.size(), seconds_of, rounds);
  if (candidate < 0) return std::nullopt;
  const auto index = static_cast<std::size_t>(candidate);
  return Timed{all[index], best[index]};
}

LinearGemm::Choice LinearGemm::choose(const GemmDescriptor& descriptor) {
  if (cache_.find(descriptor.text()) != nullptr) return Choice::known;
  const auto candidate = fastest_candidate(descriptor);
  if (!candidate) return Choice::not_offered;
  cache_.add(descriptor.text(), candidate->algorithm);
  // Those of batches, too.
  std::erase_if(plans_, [&](const auto& each) { return each.first.alone() == descriptor; });
  return Choice::made;
}

LinearGemm::Choice LinearGemm::choose_epilogue(std::span<const GemmCall> variants) {
  const auto descriptor = gemm_of(variants.front()).descriptor;
  const auto rest = variants.subspan(1);
  if (const auto* const known = cache_.find(descriptor.text())) {
    return *known == fallback && !rest.empty() ? choose_epilogue(rest) : Choice::known;
  }
  if (rest.empty()) return choose(descriptor);
  if (!can_go_without(descriptor.epilogue)) {
    const auto outcome = choose(descriptor);
    return outcome == Choice::not_offered ? choose_epilogue(rest) : outcome;
  }
  const auto whole = fastest_candidate(descriptor);
  if (!whole) return choose_epilogue(rest);
  const auto apart = gemm_of(rest.front()).descriptor;
  const auto alone = fastest_candidate(apart);
  plans_.erase(descriptor);
  if (!alone || epilogue_pays(descriptor, whole->seconds, alone->seconds)) {
    cache_.add(descriptor.text(), whole->algorithm);
    return Choice::made;
  }
  cache_.add(descriptor.text(), fallback);
  cache_.add(apart.text(), alone->algorithm);
  plans_.erase(apart);
  return Choice::made;
}

base::Status LinearGemm::adopt(std::span<const std::string> texts) {
  plans_.clear();
  return cache_.adopt(texts);
}

}  // namespace trireme::device::cuda
