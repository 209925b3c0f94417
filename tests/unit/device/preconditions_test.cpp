// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/arena.hpp"

#include "unit/device/backends.hpp"

#include <initializer_list>
#include <set>
#include <string>

using namespace trireme::device;
using trireme::device::test::for_each_backend;

namespace {

using Shape = std::initializer_list<std::int64_t>;

template <typename... All>
std::set<std::string> names_of(OperationList<All...>) {
  return {All::name...};
}

/// Issues operations of which one member is wrong. Their memory is nowhere: it must not be touched.
class Refusals {
 public:
  explicit Refusals(Kernels& kernels) : kernels_(kernels) {}

  Tensor f32(Shape shape) { return arena_.allocate(DType::f32, shape); }
  Tensor bf16(Shape shape) { return arena_.allocate(DType::bf16, shape); }
  Tensor i32(Shape shape) { return arena_.allocate(DType::i32, shape); }
  Quantised quantised(Shape shape) { return {arena_.allocate(DType::e4m3, shape), f32({1})}; }
  WideMatrix wide(Shape shape) { return {f32(shape), f32(shape)}; }
  Arena& arena() { return arena_; }

  template <typename One, typename Member>
  void of(One one, Member One::*member, const Member& wrong) {
    INFO(One::name);
    CHECK_NOTHROW(one.check());
    one.*member = wrong;
    CHECK_THROWS_WITH(kernels_.issue(one), Catch::Contains(std::string(": ") + One::name + ": "));
    names_.insert(One::name);
  }
  const std::set<std::string>& names() const { return names_; }

 private:
  Kernels& kernels_;
  Arena arena_ = Arena::measuring(Purpose::workspace);
  std::set<std::string> names_;
};

void refuse_products(Refusals& refuse) {
  const auto x = refuse.f32({4, 6});
  const auto w = refuse.f32({8, 6});
  const auto y = refuse.f32({4, 8});
  const LinearForward forward{x, w, {}, y};
  refuse.of(forward, &LinearForward::y, refuse.f32({3, 8}));
  refuse.of(forward, &LinearForward::w, refuse.bf16({8, 6}));
  refuse.of(forward, &LinearForward::bias, refuse.f32({6}));
  refuse.of(forward, &LinearForward::x, refuse.f32({2, 3, 6}).slice(1, 0, 2));
  refuse.of(LinearBackwardInput{y, w, x}, &LinearBackwardInput::dx, refuse.f32({4, 8}));
  const LinearBackwardWeight weight{y, x, w, {}};
  refuse.of(weight, &LinearBackwardWeight::dw, refuse.bf16({8, 6}));
  refuse.of(weight, &LinearBackwardWeight::d_bias, refuse.f32({6}));
  refuse.of(LinearGeluForward{x, w, {}, y, y}, &LinearGeluForward::wide, refuse.f32({8, 4}));
  refuse.of(LinearBackwardGelu{y, w, x, x}, &LinearBackwardGelu::wide, refuse.f32({6, 4}));
  const LinearForwardQuantised quantised{
      refuse.quantised({4, 6}), refuse.quantised({8, 6}), {}, refuse.bf16({4, 8})};
  refuse.of(quantised, &LinearForwardQuantised::x, refuse.quantised({4, 8}));
  refuse.of(quantised, &LinearForwardQuantised::y, y);
}

void refuse_attention(Refusals& refuse) {
  const auto q = refuse.f32({2, 5, 4, 8});
  const auto k = refuse.f32({2, 7, 2, 8});
  const Attention forward{.q = q, .k = k, .v = k, .out = q, .lse = refuse.f32({2, 4, 5})};
  refuse.of(forward, &Attention::v, q);
  refuse.of(forward, &Attention::q, refuse.f32({2, 5, 3, 8}));
  refuse.of(forward, &Attention::dropout, Dropout{.rate = 1.0F});
  refuse.of(forward, &Attention::first_keys, refuse.f32({2, 5}));
  refuse.of(forward, &Attention::first_keys, refuse.i32({2, 7}));
  auto causal = forward;
  causal.first_keys = refuse.i32({2, 9}).slice(1, 3, 5);
  refuse.of(causal, &Attention::causal, false);
  const AttentionBackward backward{forward, q, q, k, k};
  refuse.of(backward, &AttentionBackward::dv, q);
  refuse.of(backward, &AttentionBackward::d_out, k);
  refuse.of(backward, &AttentionBackward::forward, {.q = q, .k = k, .v = k, .out = q});
}

void refuse_rows(Refusals& refuse) {
  const auto x = refuse.f32({2, 3, 8});
  const auto width = refuse.f32({8});
  const auto rows = refuse.f32({6});
  const NormForward norm{.x = x, .weight = width, .y = x, .rstd = rows};
  refuse.of(norm, &NormForward::weight, rows);
  refuse.of(norm, &NormForward::residual, x);
  const NormBackward backward{
      .dy = x, .x = x, .weight = width, .rstd = rows, .dx = x, .d_weight = width};
  refuse.of(backward, &NormBackward::dx, refuse.f32({3, 2, 8}));
  refuse.of(backward, &NormBackward::kind, NormKind::layer);
  const auto tokens = refuse.i32({6});
  const auto stats = refuse.f32({3, 6});
  refuse.of(CrossEntropyStats{x, tokens, 0, stats}, &CrossEntropyStats::stats, rows);
  refuse.of(CrossEntropyGradient{x, tokens, 0, rows}, &CrossEntropyGradient::lse, width);
  refuse.of(CrossEntropyGradient{x, tokens, 0, rows}, &CrossEntropyGradient::factor, rows);
  refuse.of(CrossEntropyCombine{stats.reshape({1, 3, 6}), tokens, rows, rows},
            &CrossEntropyCombine::losses, width);
  const auto table = refuse.f32({10, 8});
  const auto narrow = refuse.f32({10, 7});
  refuse.of(EmbeddingForward{tokens, table, 0, x}, &EmbeddingForward::table, narrow);
  refuse.of(EmbeddingBackward{tokens, x, 0, table}, &EmbeddingBackward::tokens, refuse.i32({5}));
  refuse.of(AddPositions{x, table, 3, 7}, &AddPositions::first_position, std::int64_t{8});
  refuse.of(AddPositionsBackward{x, 3, table}, &AddPositionsBackward::seq, std::int64_t{11});
}

void refuse_elements(Refusals& refuse) {
  const auto x = refuse.f32({4, 6});
  const auto other = refuse.f32({6, 4});
  const auto heads = refuse.f32({2, 3, 4, 8});
  const auto angles = refuse.f32({5, 4});
  refuse.of(Rotary{heads, angles, angles, 2}, &Rotary::first_position, std::int64_t{3});
  refuse.of(Rotary{heads, angles, angles}, &Rotary::sin_table, other);
  refuse.of(SwigluForward{x, x, x}, &SwigluForward::up, other);
  refuse.of(SwigluBackward{x, x, x, x, x}, &SwigluBackward::d_up, other);
  refuse.of(GeluForward{x, x}, &GeluForward::y, other);
  refuse.of(GeluBackward{x, x, x}, &GeluBackward::dx, other);
  const ApplyDropout dropout{x, {.rate = 0.5F, .width = 6}, x};
  refuse.of(dropout, &ApplyDropout::y, other);
  refuse.of(dropout, &ApplyDropout::mask, Dropout{.rate = 0.5F, .first_column = 1, .width = 6});
  refuse.of(LargestMagnitude{x, refuse.f32({1})}, &LargestMagnitude::magnitude, x);
  refuse.of(Quantise{x, refuse.f32({1}), refuse.quantised({4, 6})}, &Quantise::x, other);
  refuse.of(Copy{x, x}, &Copy::to, other);
  refuse.of(Copy{x, x}, &Copy::from, refuse.i32({4, 6}));
  refuse.of(Add{x, x, x}, &Add::z, other);
  refuse.of(Accumulate{x, x}, &Accumulate::sum, other);
  refuse.of(HashBits{x, refuse.i32({2})}, &HashBits::hash, refuse.i32({1}));
}

void refuse_updates(Refusals& refuse) {
  const auto run = refuse.f32({9});
  const auto shorter = refuse.f32({8});
  const auto apart = refuse.f32({9, 2}).slice(1, 0, 1);
  refuse.of(AdamWUpdate{{}, run, run, run, run}, &AdamWUpdate::second_moment, apart);
  refuse.of(AdamWUpdate{{}, run, run, run, run}, &AdamWUpdate::parameter, shorter);
  refuse.of(SgdUpdate{{}, run, run, run}, &SgdUpdate::master, shorter);
  refuse.of(MeanMomentum{.gradient = run, .momentum = run, .update = run}, &MeanMomentum::update,
            shorter);
  refuse.of(RoundStochastically{run, {.width = 3, .stride = 3}, refuse.bf16({9})},
            &RoundStochastically::rounding, StochasticRounding{});
}

void refuse_matrices(Refusals& refuse) {
  const auto x = refuse.f32({2, 3, 5});
  const auto other = refuse.f32({2, 3, 5});
  const auto transposed = refuse.f32({2, 5, 3});
  const auto square = refuse.f32({2, 3, 3});
  refuse.of(NormaliseMatrices{x, other}, &NormaliseMatrices::y, transposed);
  refuse.of(MatrixNorms{x, refuse.f32({2})}, &MatrixNorms::norms, refuse.f32({3}));
  refuse.of(TransposeMatrices{x, transposed}, &TransposeMatrices::y, other);
  const auto rows = refuse.f32({3, 5});
  refuse.of(ScaleRows{rows, refuse.f32({3}), rows}, &ScaleRows::factors, refuse.f32({5}));
  refuse.of(RowProducts{rows, rows, refuse.i32({3, 2})}, &RowProducts::sums, refuse.i32({3}));
  const SymmetricProduct product{.x = x, .y = square};
  refuse.of(product, &SymmetricProduct::y, transposed);
  refuse.of(product, &SymmetricProduct::added, square);
  refuse.of(product, &SymmetricProduct::by, transposed);
  refuse.of(AddProduct{square, x, other}, &AddProduct::s, x);
  refuse.of(AddProduct{square, x, other}, &AddProduct::z, x);
  refuse.of(SymmetricRankUpdate{rows, refuse.wide({5, 5})}, &SymmetricRankUpdate::sum,
            refuse.wide({3, 3}));
  refuse.of(WideProduct{rows, refuse.wide({5, 4}), refuse.f32({3, 4})}, &WideProduct::y, rows);
  const DecompositionWorkspace workspace(refuse.arena(), 3);
  const auto matrix = refuse.f32({3, 3});
  refuse.of(SymmetricEigenvectors{{matrix}, matrix, refuse.f32({3}), workspace},
            &SymmetricEigenvectors::vectors, rows);
  refuse.of(OrthonormaliseRows{matrix, refuse.f32({3}), workspace}, &OrthonormaliseRows::x, rows);
}

void refuse_all(Kernels& kernels) {
  Refusals refuse(kernels);
  refuse_products(refuse);
  refuse_attention(refuse);
  refuse_rows(refuse);
  refuse_elements(refuse);
  refuse_updates(refuse);
  refuse_matrices(refuse);
  // Any tensor can be filled.
  auto all = names_of(Operations{});
  all.erase(Fill::name);
  CHECK(refuse.names() == all);
}

}  // namespace

TEST_CASE("every operation is refused by its name where an operand does not fit") {
  for_each_backend(refuse_all);
  const auto measuring = make_measuring_kernels();
  refuse_all(*measuring);
}
