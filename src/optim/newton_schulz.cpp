// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/newton_schulz.hpp"

#include "trireme/base/contract.hpp"

#include "gram_steps.hpp"

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

ownership::NewtonSchulzForm form_of(const NewtonSchulz& rule, const ownership::MatrixShape& shape) {
  using ownership::NewtonSchulzForm;
  const bool both = rule.triangles == device::Triangles::both;
  const auto plain = both ? NewtonSchulzForm::standard : NewtonSchulzForm::symmetric;
  const auto gram = both ? NewtonSchulzForm::gram : NewtonSchulzForm::gram_symmetric;
  const auto flops = [&](NewtonSchulzForm form) {
    return ownership::newton_schulz_flops(form, shape, rule.steps);
  };
  return flops(gram) < flops(plain) ? gram : plain;
}

Step newton_schulz_step(NewtonSchulzCoefficients coefficients, int step) {
  const auto steps = steps_of(coefficients);
  return steps[std::min(static_cast<std::size_t>(step), steps.size() - 1)];
}

std::vector<StepRun> runs_of(const NewtonSchulz& rule, const ownership::MatrixShape& shape) {
  const auto form = form_of(rule, shape);
  const bool gram = form == ownership::NewtonSchulzForm::gram ||
                    form == ownership::NewtonSchulzForm::gram_symmetric;
  const auto lengths = gram ? ownership::newton_schulz_runs(rule.steps)
                            : std::vector<int>(static_cast<std::size_t>(rule.steps), 1);
  std::vector<StepRun> runs;
  int first = 0;
  for (const int steps : lengths) runs.push_back({std::exchange(first, first + steps), steps});
  return runs;
}

GramMemory::GramMemory(device::Arena& workspace, device::DType products, std::int64_t count,
                       std::int64_t n, const std::vector<StepRun>& runs)
    : r(workspace.allocate(products, {count, n, n})),
      s(workspace.allocate(products, {count, n, n})) {
  const bool twos =
      std::any_of(runs.begin(), runs.end(), [](const StepRun& run) { return run.steps > 1; });
  if (twos) t = workspace.allocate(products, {count, n, n});
}

/// With R = X X^T a step multiplies X by a I + S, S = b R + c R R. Of two steps, all factors are
/// polynomials of R, and commute: with Q = a I + S the second step's R is Q R Q, and both multiply
/// X by (a' I + S') (a I + S) = a' a I + S' S + a' S + a S', where a S' is what is kept of S'.
GramFactor gram_factor(device::Kernels& kernels, const NewtonSchulz& rule, const GramMemory& memory,
                       const StepRun& run) {
  const auto& [r, s, t] = memory;
  // y = scale * x * by + added_scale * by.
  const auto product = [&](const Tensor& x, const Tensor& by, const Tensor& y, float scale,
                           float added_scale) {
    kernels.issue(device::SymmetricProduct{.x = x,
                                           .added = by,
                                           .y = y,
                                           .scale = scale,
                                           .added_scale = added_scale,
                                           .triangles = rule.triangles,
                                           .by = by});
  };
  const auto square = [&](const Step& step, const Tensor& to, float scale) {
    product(memory.r, memory.r, to, scale * step[2], scale * step[1]);
  };
  const auto first = newton_schulz_step(rule.coefficients, run.first);
  const float a = first[0];
  square(first, s, 1.0F);
  if (run.steps == 1) return {s, a};
  TRIREME_EXPECT(run.steps == 2, "a run has one or two steps");
  const auto second = newton_schulz_step(rule.coefficients, run.first + 1);
  product(s, r, t, 1.0F, a);  // Q R
  product(s, t, r, 1.0F, a);  // Q R Q
  square(second, t, a);
  product(t, s, r, 1 / a, second[0]);
  kernels.issue(device::Add{r, t, r});
  return {r, constant_of(rule, run)};
}

float constant_of(const NewtonSchulz& rule, const StepRun& run) {
  float a = 1;
  for (int step = run.first; step < run.first + run.steps; ++step) {
    a *= newton_schulz_step(rule.coefficients, step)[0];
  }
  return a;
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
  const auto runs = runs_of(rule, {rows, columns});
  const GramMemory memory(workspace, products, count, n, runs);
  // The iteration is of the shorter side: a tall matrix is transposed before and after it.
  const auto as_given = [&](const Tensor& of) { return of.reshape({count, rows, columns}); };
  kernels.issue(device::NormaliseMatrices{matrices, as_given(tall ? next : x), rule.eps});
  if (tall) kernels.issue(device::TransposeMatrices{as_given(next), x});
  for (const auto& run : runs) {
    kernels.issue(device::SymmetricProduct{.x = x, .y = memory.r, .triangles = rule.triangles});
    const auto [q, a] = gram_factor(kernels, rule, memory, run);
    kernels.issue(device::AddProduct{q, x, next, a});
    std::swap(x, next);
  }
  if (tall) {
    kernels.issue(device::TransposeMatrices{x, as_given(next)});
    std::swap(x, next);
  }
  kernels.issue(device::Copy{as_given(x), matrices});
}

}  // namespace trireme::optim
