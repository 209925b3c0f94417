// SPDX-License-Identifier: Apache-2.0
// GEMMs of batches of matrices.
#include "device/cuda/gemm/matrix_gemms.hpp"
#include "device/cuda/gemm/plan.hpp"

namespace trireme::device::cuda {

LinearGemm::Plan* LinearGemm::plan_for_batch(const GemmDescriptor& descriptor) {
  const auto* const one = plan_for(descriptor.alone());
  std::optional<Plan> plan;
  if (one != nullptr) {
    plan.emplace();
    describe(descriptor, *plan);
    plan->algorithm = one->algorithm;
    if (!judge(*plan, plan->algorithm).fits) plan.reset();
  }
  auto& kept = plans_.emplace(descriptor, plan).first->second;
  return kept ? &*kept : nullptr;
}

void LinearGemm::multiply_batch(const Gemm& gemm) {
  if (gemm.descriptor.matrices > 1 && try_multiply(gemm)) return;
  for (std::int64_t matrix = 0; matrix < gemm.descriptor.matrices; ++matrix) {
    multiply(one_of(gemm, matrix));
  }
}

Triangles LinearGemm::symmetric_product(const GemmCall& call) {
  for (const auto& gemm : matrix_gemms(call)) multiply_batch(gemm);
  const bool halved =
      call.triangles == Triangles::lower && triangle_halvings(call.result.dim(1)) > 0;
  return halved ? Triangles::lower : Triangles::both;
}

void LinearGemm::add_product(const GemmCall& call) {
  for (const auto& gemm : matrix_gemms(call)) multiply_batch(gemm);
}

}  // namespace trireme::device::cuda
