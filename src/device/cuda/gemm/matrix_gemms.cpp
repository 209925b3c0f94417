// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gemm/matrix_gemms.hpp"

#include <algorithm>

namespace trireme::device::cuda {
namespace {

using Kind = GemmCall::Kind;

/// Squares of a symmetric result: `count` of them, each `step` rows and columns behind the one
/// before.
struct Squares {
  std::int64_t side = 0;
  std::int64_t row = 0;
  std::int64_t step = 0;
  std::int64_t count = 1;
};

/// Squares below the diagonal, those of each halving, and those on it.
std::vector<Squares> squares_of(std::int64_t n, int halvings) {
  std::vector<Squares> all;
  for (int halving = 1; halving <= halvings; ++halving) {
    const auto side = n >> halving;
    all.push_back({side, side, 2 * side, std::int64_t{1} << (halving - 1)});
  }
  const auto side = n >> halvings;
  all.push_back({side, 0, side, std::int64_t{1} << halvings});
  return all;
}

/// An operand of a batch: its first element, and the elements between its matrices and between the
/// squares of each.
struct Place {
  Tensor batch;
  std::int64_t first = 0;
  std::int64_t square_step = 0;

  std::int64_t matrix_step() const { return batch.dim(1) * batch.dim(2); }
  void* at(std::int64_t elements) const {
    // Integer arithmetic: addresses of a measuring arena are not pointers into any object.
    const auto begin = reinterpret_cast<std::uintptr_t>(batch.raw());
    return reinterpret_cast<void*>(begin + static_cast<std::uintptr_t>(first + elements) *
                                               size_of(batch.dtype()));
  }
  /// Alignment of all its matrices and squares; the same for one matrix as for many.
  std::uint32_t alignment() const {
    const auto bytes = [&](std::int64_t elements) {
      return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(elements) *
                                           size_of(batch.dtype()));
    };
    return std::min({alignment_of(at(0)), alignment_of(bytes(matrix_step())),
                     alignment_of(bytes(square_step))});
  }
};

/// Where the operands of some squares lie, as the library sees them.
struct Places {
  Place a;
  Place b;
  Place c;
  Place d;
};

/// One GEMM for each matrix, of a batch of squares, or for each square, of a batch of matrices:
/// whichever are fewer.
void add_gemms(Gemm gemm, const Places& places, std::int64_t squares, std::vector<Gemm>& all) {
  const auto matrices = places.d.batch.dim(0);
  const bool of_squares = squares > matrices;
  auto& descriptor = gemm.descriptor;
  descriptor.matrices = std::max(squares, matrices);
  const auto within = [&](const Place& place) {
    if (descriptor.matrices == 1) return std::int64_t{0};
    return of_squares ? place.square_step : place.matrix_step();
  };
  descriptor.batch_stride_a = within(places.a);
  descriptor.batch_stride_b = within(places.b);
  descriptor.batch_stride_d = within(places.d);
  if (places.c.batch) descriptor.batch_stride_c = within(places.c);
  for (std::int64_t index = 0; index < std::min(squares, matrices); ++index) {
    const auto begin = [&](const Place& place) {
      return place.at(index * (of_squares ? place.matrix_step() : place.square_step));
    };
    gemm.operands.a = begin(places.a);
    gemm.operands.b = begin(places.b);
    gemm.operands.d = begin(places.d);
    gemm.operands.c = places.c.batch ? begin(places.c) : nullptr;
    all.push_back(gemm);
  }
}

Gemm gemm_at(const GemmCall& call, const Places& places) {
  Gemm gemm;
  auto& descriptor = gemm.descriptor;
  descriptor.in = call.x.dtype();
  descriptor.out = call.result.dtype();
  descriptor.stride_a = places.a.batch.dim(2);
  descriptor.stride_b = places.b.batch.dim(2);
  descriptor.stride_d = places.d.batch.dim(2);
  descriptor.alignment_a = places.a.alignment();
  descriptor.alignment_b = places.b.alignment();
  descriptor.alignment_d = places.d.alignment();
  gemm.alpha = call.factors.product;
  if (!places.c.batch) return gemm;
  descriptor.accumulate = true;
  descriptor.stride_c = places.c.batch.dim(2);
  descriptor.alignment_c = places.c.alignment();
  gemm.beta = call.factors.added;
  return gemm;
}

/// y = x * transpose(w), and added: y's columns are the library's rows.
std::vector<Gemm> symmetric_gemms(const GemmCall& call) {
  const auto n = call.x.dim(1);
  const auto m = call.x.dim(2);
  std::vector<Gemm> all;
  const int halvings = call.triangles == Triangles::lower ? triangle_halvings(n) : 0;
  for (const auto& [side, row, step, count] : squares_of(n, halvings)) {
    const auto in_square = [&](const Tensor& batch) {
      return Place{batch, row * n, count > 1 ? step * (n + 1) : 0};
    };
    const auto along = count > 1 ? step * m : 0;
    const Places places{{call.w, 0, along},
                        {call.x, row * m, along},
                        in_square(call.added),
                        in_square(call.result)};
    auto gemm = gemm_at(call, places);
    gemm.descriptor.m = gemm.descriptor.n = side;
    gemm.descriptor.k = m;
    gemm.descriptor.transpose_a = true;
    add_gemms(gemm, places, count, all);
  }
  return all;
}

/// z = s * x, and added.
std::vector<Gemm> added_gemms(const GemmCall& call) {
  const auto n = call.w.dim(1);
  const Places places{{call.w}, {call.x}, {call.added}, {call.result}};
  auto gemm = gemm_at(call, places);
  gemm.descriptor.m = call.w.dim(2);
  gemm.descriptor.n = gemm.descriptor.k = n;
  std::vector<Gemm> all;
  add_gemms(gemm, places, 1, all);
  return all;
}

}  // namespace

bool is_of_matrices(const GemmCall& call) {
  return call.kind == Kind::symmetric_product || call.kind == Kind::add_product;
}

int triangle_halvings(std::int64_t n) {
  constexpr std::int64_t fewest_results = std::int64_t{1} << 21;
  // Sides of whole tiles, whose addresses are aligned as those of the matrix are.
  constexpr std::int64_t tile = 128;
  int halvings = 0;
  while (n % (tile << (halvings + 1)) == 0 && (n * n) >> (halvings + 2) >= fewest_results) {
    ++halvings;
  }
  return halvings;
}

std::vector<Gemm> matrix_gemms(const GemmCall& call) {
  if (call.result.element_count() == 0) return {};
  return call.kind == Kind::symmetric_product ? symmetric_gemms(call) : added_gemms(call);
}

Gemm one_of(const Gemm& batch, std::int64_t matrix) {
  auto one = batch;
  const auto& descriptor = batch.descriptor;
  const auto behind = [matrix]<typename Address>(Address address, std::int64_t stride,
                                                 DType dtype) {
    const auto offset = static_cast<std::uintptr_t>(matrix * stride) * size_of(dtype);
    return reinterpret_cast<Address>(reinterpret_cast<std::uintptr_t>(address) + offset);
  };
  auto& operands = one.operands;
  operands.a = behind(operands.a, descriptor.batch_stride_a, descriptor.in);
  operands.b = behind(operands.b, descriptor.batch_stride_b, descriptor.in);
  operands.d = behind(operands.d, descriptor.batch_stride_d, descriptor.out);
  if (operands.c != nullptr) {
    operands.c = behind(operands.c, descriptor.batch_stride_c, descriptor.out);
  }
  one.descriptor = descriptor.alone();
  return one;
}

}  // namespace trireme::device::cuda
