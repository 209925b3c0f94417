// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gemm/matrix_gemms.hpp"

#include "trireme/device/arena.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace trireme::device;
using namespace trireme::device::cuda;

namespace {

constexpr std::int64_t m = 64;

/// A batch whose operands lie nowhere.
struct Pretended {
  explicit Pretended(std::int64_t matrices, std::int64_t its_n)
      : count(matrices),
        n(its_n),
        x(arena.allocate(DType::bf16, {count, n, m})),
        by(arena.allocate(DType::bf16, {count, n, m})),
        added(arena.allocate(DType::bf16, {count, n, n})),
        y(arena.allocate(DType::bf16, {count, n, n})) {}

  std::vector<Gemm> gemms(Triangles triangles = Triangles::lower) const {
    return matrix_gemms(gemm_call(SymmetricProduct{x, added, y, 2.0F, 0.5F, triangles, by}));
  }

  Arena arena = Arena::measuring(Purpose::workspace);
  std::int64_t count;
  std::int64_t n;
  Tensor x;
  Tensor by;
  Tensor added;
  Tensor y;
};

/// Elements from the begin of a tensor to an address.
std::int64_t place_in(const Tensor& tensor, const void* address) {
  const auto bytes =
      reinterpret_cast<std::intptr_t>(address) - reinterpret_cast<std::intptr_t>(tensor.raw());
  return bytes / static_cast<std::int64_t>(size_of(tensor.dtype()));
}

/// How often each square of `grain` x `grain` results is computed, by matrix, row and column.
using Cover = std::map<std::array<std::int64_t, 3>, int>;
constexpr std::int64_t grain = 64;

/// Marks a GEMM of one matrix; its operands have to belong to each other.
void mark(const Pretended& of, const Gemm& gemm, Cover& cover) {
  const auto at = place_in(of.y, gemm.operands.d);
  const auto matrix = at / (of.n * of.n);
  const auto row = at / of.n % of.n;
  const auto column = at % of.n;
  CHECK(place_in(of.added, gemm.operands.c) == at);
  CHECK(place_in(of.x, gemm.operands.b) == (matrix * of.n + row) * m);
  CHECK(place_in(of.by, gemm.operands.a) == (matrix * of.n + column) * m);
  CHECK(gemm.descriptor.k == m);
  for (auto r = row; r < row + gemm.descriptor.n; r += grain) {
    for (auto c = column; c < column + gemm.descriptor.m; c += grain) {
      ++cover[{matrix, r / grain, c / grain}];
    }
  }
}

}  // namespace

TEST_CASE("of a symmetric product each result of the lower triangle is computed once") {
  const std::map<std::int64_t, double> shares{{1024, 1},      {2048, 1},     {2560, 1},
                                              {4096, 0.625},  {5120, 0.625}, {6144, 0.5625},
                                              {8192, 0.53125}};
  for (const auto& [n, share] : shares) {
    for (const std::int64_t count : {1, 3}) {
      CAPTURE(n, count);
      const Pretended batch(count, n);
      Cover cover;
      std::int64_t results = 0;
      for (const auto& gemm : batch.gemms()) {
        CHECK(gemm.alpha == 2.0F);
        CHECK(gemm.beta == 0.5F);
        CHECK(gemm.descriptor.m * gemm.descriptor.n >= std::min(n * n, std::int64_t{1} << 18));
        for (std::int64_t each = 0; each < gemm.descriptor.matrices; ++each) {
          mark(batch, one_of(gemm, each), cover);
          results += gemm.descriptor.m * gemm.descriptor.n;
        }
      }
      CHECK(static_cast<double>(results) == share * static_cast<double>(count * n * n));
      std::int64_t wrong = 0;
      for (std::int64_t matrix = 0; matrix < count; ++matrix) {
        for (std::int64_t row = 0; row < n / grain; ++row) {
          for (std::int64_t column = 0; column <= row; ++column) {
            wrong += cover[{matrix, row, column}] == 1 ? 0 : 1;
          }
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("the choice for a matrix does not depend on its batch") {
  for (const std::int64_t n : {96, 4096}) {
    std::vector<std::string> texts;
    for (const std::int64_t count : {1, 2, 5}) {
      const Pretended batch(count, n);
      std::string text;
      std::string last;
      for (const auto& gemm : batch.gemms()) {
        // Squares of one kind follow each other, in one GEMM or in several.
        const auto own = gemm.descriptor.alone().text();
        if (own != last) text += own + "\n";
        last = own;
      }
      texts.push_back(text);
    }
    CHECK(texts[0] == texts[1]);
    CHECK(texts[0] == texts[2]);
    CHECK(texts[0].find(" batch,") != std::string::npos);
  }
}

TEST_CASE("products with both triangles, of odd sides and of many matrices are a GEMM each") {
  for (const auto& [count, n, triangles] :
       {std::tuple{std::int64_t{4}, std::int64_t{4096}, Triangles::both},
        std::tuple{std::int64_t{1}, std::int64_t{5001}, Triangles::lower},
        std::tuple{std::int64_t{40}, std::int64_t{1024}, Triangles::lower}}) {
    const auto gemms = Pretended(count, n).gemms(triangles);
    REQUIRE(gemms.size() == 1);
    CHECK(gemms[0].descriptor.matrices == count);
    CHECK(gemms[0].descriptor.m == n);
  }
  // Squares of a matrix that are fewer than the matrices have a batch of 8 each.
  CHECK(Pretended(8, 4096).gemms().size() == 1 + 2 + 4);
  CHECK(Pretended(1, 8192).gemms().size() == 5);
  const Pretended none(0, 64);
  CHECK(none.gemms().empty());
}
