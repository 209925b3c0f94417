// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/newton_schulz.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace trireme::optim {

using device::Tensor;

namespace {

using Step = std::array<float, 3>;

constexpr Step simple[] = {{3.4445F, -4.7750F, 2.0315F}};
constexpr Step quintic[] = {{4.0848F, -6.8946F, 2.9270F},
                            {3.9505F, -6.3029F, 2.6377F},
                            {3.7418F, -5.5913F, 2.3037F},
                            {2.8769F, -3.1427F, 1.2046F},
                            {2.8366F, -3.0525F, 1.2012F}};
constexpr Step polar_express[] = {{8.2051F, -22.9019F, 16.4607F}, {4.0664F, -2.8612F, 0.5184F},
                                  {3.9096F, -2.8234F, 0.5250F},   {3.2856F, -2.4153F, 0.4853F},
                                  {2.2779F, -1.6198F, 0.3985F},   {1.8726F, -1.2307F, 0.3585F},
                                  {1.8564F, -1.2132F, 0.3568F},   {1.8750F, -1.2500F, 0.3750F}};

std::span<const Step> steps_of(NewtonSchulzCoefficients coefficients) {
  switch (coefficients) {
    case NewtonSchulzCoefficients::simple:
      return simple;
    case NewtonSchulzCoefficients::quintic:
      return quintic;
    case NewtonSchulzCoefficients::polar_express:
      return polar_express;
  }
  return simple;
}

}  // namespace

Step newton_schulz_step(NewtonSchulzCoefficients coefficients, int step) {
  const auto steps = steps_of(coefficients);
  return steps[std::min(static_cast<std::size_t>(step), steps.size() - 1)];
}

void orthogonalise(device::Kernels& kernels, device::Arena& workspace, const NewtonSchulz& rule,
                   device::DType products, const Tensor& matrices) {
  const auto count = matrices.dim(0);
  const auto rows = matrices.dim(1);
  const auto columns = matrices.dim(2);
  const bool tall = rows > columns;
  const auto n = std::min(rows, columns);
  const auto m = std::max(rows, columns);
  const device::ArenaScope scope(workspace);
  Tensor x = workspace.allocate(products, {count, n, m});
  Tensor next = workspace.allocate(products, {count, n, m});
  const Tensor a = workspace.allocate(products, {count, n, n});
  const Tensor b = workspace.allocate(products, {count, n, n});
  // The iteration is of the shorter side: a tall matrix is transposed before and after it.
  const auto as_given = [&](const Tensor& of) { return of.reshape({count, rows, columns}); };
  kernels.issue(device::NormaliseMatrices{matrices, as_given(tall ? next : x), rule.eps});
  if (tall) kernels.issue(device::TransposeMatrices{as_given(next), x});
  for (int step = 0; step < rule.steps; ++step) {
    const auto [first, third, fifth] = newton_schulz_step(rule.coefficients, step);
    kernels.issue(device::SymmetricProduct{x, {}, a, 1.0F, 0.0F, rule.triangles});
    kernels.issue(device::SymmetricProduct{a, a, b, fifth, third, rule.triangles});
    kernels.issue(device::AddProduct{b, x, next, first});
    std::swap(x, next);
  }
  if (tall) {
    kernels.issue(device::TransposeMatrices{x, as_given(next)});
    std::swap(x, next);
  }
  kernels.issue(device::Copy{as_given(x), matrices});
}

}  // namespace trireme::optim
