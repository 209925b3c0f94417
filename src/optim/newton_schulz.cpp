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

/// Batch of matrices during its iteration.
struct Iteration {
  device::Kernels& kernels;
  const NewtonSchulz& rule;
  Tensor x;     // [count, n, m]
  Tensor next;  // [count, n, m]
  Tensor r;     // [count, n, n], as the following
  Tensor s;
  Tensor t;  // of Gram runs alone

  /// S = scale (b R + c R R) of a step, into `to`.
  void square(const Step& step, const Tensor& to, float scale = 1.0F) const {
    kernels.issue(
        device::SymmetricProduct{r, r, to, scale * step[2], scale * step[1], rule.triangles});
  }
  /// X <- (a I + q) X.
  void apply(const Tensor& q, float a) {
    kernels.issue(device::AddProduct{q, x, next, a});
    std::swap(x, next);
  }

  void run_of_one(const Step& step) {
    kernels.issue(device::SymmetricProduct{x, {}, r, 1.0F, 0.0F, rule.triangles});
    square(step, s);
    apply(s, step[0]);
  }

  /// Two steps on R = X X^T alone: what a step multiplies X by is a polynomial of R, and so all
  /// commute. With Q = a I + S, the next R is Q R Q, and both steps multiply X by
  /// (a' I + S') (a I + S) = a' a I + S' S + a' S + a S', where a S' is what is kept of S'.
  void run_of_two(const Step& first, const Step& second) {
    kernels.issue(device::SymmetricProduct{x, {}, r, 1.0F, 0.0F, rule.triangles});
    const float a = first[0];
    square(first, s);
    kernels.issue(device::SymmetricProduct{s, r, t, 1.0F, a, rule.triangles, r});  // Q R
    kernels.issue(device::SymmetricProduct{s, t, r, 1.0F, a, rule.triangles, t});  // Q R Q
    square(second, t, a);
    kernels.issue(device::SymmetricProduct{t, s, r, 1 / a, second[0], rule.triangles, s});
    kernels.issue(device::Add{r, t, r});
    apply(r, a * second[0]);
  }
};

/// Steps in one run of a form.
std::vector<int> runs_of(const NewtonSchulz& rule, const layout::MatrixShape& shape) {
  switch (form_of(rule, shape)) {
    case layout::NewtonSchulzForm::standard:
    case layout::NewtonSchulzForm::symmetric:
      return std::vector<int>(static_cast<std::size_t>(rule.steps), 1);
    case layout::NewtonSchulzForm::gram:
    case layout::NewtonSchulzForm::gram_symmetric:
      break;
  }
  return layout::newton_schulz_runs(rule.steps);
}

}  // namespace

layout::NewtonSchulzForm form_of(const NewtonSchulz& rule, const layout::MatrixShape& shape) {
  using layout::NewtonSchulzForm;
  const bool both = rule.triangles == device::Triangles::both;
  const auto plain = both ? NewtonSchulzForm::standard : NewtonSchulzForm::symmetric;
  const auto gram = both ? NewtonSchulzForm::gram : NewtonSchulzForm::gram_symmetric;
  const auto flops = [&](NewtonSchulzForm form) {
    return layout::newton_schulz_flops(form, shape, rule.steps);
  };
  return flops(gram) < flops(plain) ? gram : plain;
}

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
  const auto runs = runs_of(rule, {rows, columns});
  const bool gram = std::any_of(runs.begin(), runs.end(), [](int run) { return run > 1; });
  Iteration all{kernels,
                rule,
                workspace.allocate(products, {count, n, m}),
                workspace.allocate(products, {count, n, m}),
                workspace.allocate(products, {count, n, n}),
                workspace.allocate(products, {count, n, n}),
                gram ? workspace.allocate(products, {count, n, n}) : Tensor{}};
  auto& x = all.x;
  auto& next = all.next;
  // The iteration is of the shorter side: a tall matrix is transposed before and after it.
  const auto as_given = [&](const Tensor& of) { return of.reshape({count, rows, columns}); };
  kernels.issue(device::NormaliseMatrices{matrices, as_given(tall ? next : x), rule.eps});
  if (tall) kernels.issue(device::TransposeMatrices{as_given(next), x});
  int step = 0;
  const auto next_step = [&] { return newton_schulz_step(rule.coefficients, step++); };
  for (const int run : runs) {
    const auto first = next_step();
    if (run == 1) {
      all.run_of_one(first);
    } else {
      all.run_of_two(first, next_step());
    }
  }
  if (tall) {
    kernels.issue(device::TransposeMatrices{x, as_given(next)});
    std::swap(x, next);
  }
  kernels.issue(device::Copy{as_given(x), matrices});
}

}  // namespace trireme::optim
