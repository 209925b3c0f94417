// SPDX-License-Identifier: Apache-2.0
// bench_matrices: products of whole matrices on the cpu backend beside a plain product.
//
// Every way to multiply runs in turn with a linear layer's product of the same numbers, so that
// all meet the same neighbours on a shared machine; the best time of each counts. Rates are of the
// FLOPs of the whole product: a triangle alone may pass 100 %.

#include "trireme/base/format.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/optim/newton_schulz.hpp"
#include "trireme/ownership/matrix_cost.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace trireme;
using device::DType;
using device::Tensor;
using device::Triangles;

struct Work {
  std::string name;
  /// FLOPs of whole products.
  double operations = 0;
  std::function<void()> run;
  double best_seconds = std::numeric_limits<double>::infinity();
};

double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Numbers of [-1, 1) that repeat late.
void fill(device::Kernels& kernels, const Tensor& to, device::Arena& arena) {
  const device::ArenaScope scope(arena);
  const auto numbers = arena.allocate(DType::f32, {to.element_count()});
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < to.element_count(); ++i) {
    state = state * 1664525U + 1013904223U;
    numbers.f32()[i] = static_cast<float>(state >> 8U) / static_cast<float>(1U << 23U) - 1.0F;
  }
  kernels.issue(device::Copy{numbers, to.reshape({to.element_count()})});
}

/// Ways to multiply matrices of [side, length]; the first is the plain product of the others.
std::vector<Work> works_of(device::Kernels& kernels, device::Arena& arena, DType dtype,
                           std::int64_t side, std::int64_t length) {
  const auto x = arena.allocate(dtype, {1, side, length});
  const auto next = arena.allocate(dtype, {1, side, length});
  const auto gram = arena.allocate(dtype, {1, side, side});
  fill(kernels, x, arena);
  const auto flat = x.reshape({side, length});
  const auto n = static_cast<double>(side);
  const auto operations = 2 * n * n * static_cast<double>(length);
  std::vector<Work> works;
  works.push_back(
      {"linear layer", operations, [=, &kernels] {
         kernels.issue(device::LinearForward{flat, flat, {}, gram.reshape({side, side})});
       }});
  for (const auto triangles : {Triangles::both, Triangles::lower}) {
    works.push_back(
        {triangles == Triangles::both ? "symmetric, both triangles" : "symmetric, one triangle",
         operations, [=, &kernels] {
           kernels.issue(device::SymmetricProduct{x, {}, gram, 1.0F, 0.0F, triangles});
         }});
  }
  works.push_back({"product and term", operations, [=, &kernels] {
                     kernels.issue(device::AddProduct{gram, x, next, 0.5F});
                   }});
  const auto matrix = arena.allocate(DType::f32, {1, side, length});
  fill(kernels, matrix, arena);
  works.push_back(
      {"five steps of Newton-Schulz",
       ownership::newton_schulz_flops(ownership::NewtonSchulzForm::standard, {side, length}),
       [=, &kernels, &arena] { optim::orthogonalise(kernels, arena, {}, dtype, matrix); }});
  if (dtype != DType::f32) return works;
  // Products of SOAP with sums in fp64.
  const device::WideMatrix sum{arena.allocate(DType::f32, {side, side}),
                               arena.allocate(DType::f32, {side, side})};
  for (const auto& part : {sum.high, sum.low}) kernels.issue(device::Fill{part, 0.0F});
  const auto columns = x.reshape({length, side});
  works.push_back({"rank update, fp64 sums", operations, [=, &kernels] {
                     kernels.issue(device::SymmetricRankUpdate{columns, sum, 0.5F});
                   }});
  const auto product = next.reshape({length, side});
  works.push_back({"product, fp64 sums", operations, [=, &kernels] {
                     kernels.issue(device::WideProduct{columns, sum, product});
                   }});
  return works;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  if (threads < 1 || rounds < 1) {
    std::cerr << "usage: bench_matrices [THREADS [ROUNDS]]\n";
    return 2;
  }
  const auto kernels = device::make_cpu_kernels(threads);
  auto arena = device::Arena::host(device::Purpose::workspace, std::size_t{1} << 30);
  std::cout << "type  shape          product                        ms   GFLOP/s  of plain\n";
  for (const auto dtype : {DType::f32, DType::bf16}) {
    for (const auto& [side, length] :
         {std::pair{512, 512}, std::pair{512, 2048}, std::pair{1024, 1024}, std::pair{1024, 4096},
          std::pair{2048, 2048}, std::pair{4096, 4096}}) {
      const device::ArenaScope scope(arena);
      auto works = works_of(*kernels, arena, dtype, side, length);
      // The best of many where a product is shorter than what disturbs it.
      const int turns = rounds * std::max(1, static_cast<int>(2e9 / works.front().operations));
      for (int round = 0; round < turns; ++round) {
        for (auto& work : works) {
          work.best_seconds = std::min(work.best_seconds, seconds_of(work));
        }
      }
      const auto rate = [](const Work& work) { return work.operations / work.best_seconds / 1e9; };
      for (const auto& work : works) {
        std::cout << base::format("{:4}  {:>5} x {:<5}  {:27} {:8.3f}  {:8.1f}  {:6.2f}\n",
                                  device::name(dtype), side, length, work.name,
                                  work.best_seconds * 1e3, rate(work),
                                  rate(work) / rate(works.front()));
      }
    }
  }
  return 0;
}
