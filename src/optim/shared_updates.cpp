// SPDX-License-Identifier: Apache-2.0
#include "shared_updates.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace trireme::optim {

using device::DType;
using device::Tensor;

namespace {

std::size_t share_of(const SharedMatrix& sharing, int rank) {
  const auto own = std::find_if(sharing.shares.begin(), sharing.shares.end(),
                                [&](const auto& share) { return share.rank == rank; });
  TRIREME_EXPECT(own != sharing.shares.end(), "a rank shares what it holds a part of");
  return static_cast<std::size_t>(own - sharing.shares.begin());
}

/// Box that a share's rank computes.
layout::Box box_of(const ownership::MatrixShape& shape, const layout::FlatRange& slice) {
  if (shape.rows > shape.columns) return {{slice.begin, 0}, {slice.size(), shape.columns}};
  return {{0, slice.begin}, {shape.rows, slice.size()}};
}

}  // namespace

SharedUpdate::SharedUpdate(const SharingContext& context, const ownership::MatrixShape& shape,
                           const SharedMatrix& sharing)
    : context_(context),
      sharing_(sharing),
      shape_(shape),
      own_(share_of(sharing, context.group.rank())),
      runs_(runs_of(context.rule, shape)),
      steps_(steps_of(runs_.size())),
      held_(context.workspace.allocate(DType::f32,
                                       {own_share().held.length[0], own_share().held.length[1]})),
      memory_(context.workspace, context.products, 1, shape.shorter(), runs_),
      squares_(context.workspace.allocate(DType::i32, {std::ssize(sharing.shares), 2})) {
  TRIREME_EXPECT(runs_.size() == sharing.gram_ranks.size(), "a rank for the squares of each run");
  const auto n = shape.shorter();
  const auto allocate = [&](std::int64_t rows, std::int64_t columns) {
    return context.workspace.allocate(context.products, {1, rows, columns});
  };
  if (has_columns()) {
    x_ = allocate(n, own_share().slice.size());
    next_x_ = allocate(n, own_share().slice.size());
  }
  const bool adds = std::any_of(sharing.gram_ranks.begin(), sharing.gram_ranks.end(),
                                [&](int rank) { return is_own(rank); });
  for (const auto& share : sharing.shares) {
    slice_blocks_.push_back(block_of(share, own_share()));
    held_blocks_.push_back(block_of(own_share(), share));
    auto& term = terms_.emplace_back();
    if (&share == &own_share()) {
      term = memory_.r;
    } else if (adds && share.slice.size() > 0) {
      term = allocate(n, n);
    }
  }
}

std::vector<SharedUpdate::Step> SharedUpdate::steps_of(std::size_t runs) {
  std::vector<Step> steps{{Phase::norm}, {Phase::columns}};
  for (std::size_t run = 0; run < runs; ++run) {
    steps.push_back({Phase::terms, run});
    steps.push_back({Phase::factor, run});
  }
  steps.push_back({Phase::held});
  return steps;
}

/// Elements that a rank holds of its own slice need no room: they are copied to their place.
SharedUpdate::Block SharedUpdate::block_of(const SharedMatrix::Share& holder,
                                           const SharedMatrix::Share& computing) const {
  Block block{layout::intersect(holder.held, box_of(shape_, computing.slice)), {}};
  if (block.box && &holder != &computing) {
    const auto& length = block.box->length;
    block.values = context_.workspace.allocate(context_.products, {length[0], length[1]});
  }
  return block;
}

/// A box of the own slice is in `next_x_`, as rows, of a matrix with more rows than columns.
Tensor SharedUpdate::place(Side side, const layout::Box& box) const {
  const auto cut = [&](const Tensor& x, std::int64_t first_row, std::int64_t first_column) {
    return x.slice(0, box.offset[0] - first_row, box.length[0])
        .slice(1, box.offset[1] - first_column, box.length[1]);
  };
  const auto& [rank, held, slice] = own_share();
  if (side == Side::held) return cut(held_, held.offset[0], held.offset[1]);
  if (is_tall()) return cut(next_x_.reshape({slice.size(), shape_.columns}), slice.begin, 0);
  return cut(x_.reshape({shape_.rows, slice.size()}), 0, slice.begin);
}

/// act(index of the share, its rank) for all others.
template <typename Act>
void SharedUpdate::each_other(const Act& act) const {
  for (std::size_t index = 0; index < sharing_.shares.size(); ++index) {
    if (index != own_) act(index, sharing_.shares[index].rank);
  }
}

/// Messages of a matrix between two ranks match in the order of their start.
void SharedUpdate::send(const Tensor& x, int peer) {
  under_way_.push_back(context_.group.start_send(x.flat(), peer, sharing_.number));
}

void SharedUpdate::receive(const Tensor& x, int peer) {
  under_way_.push_back(context_.group.start_receive(x.flat(), peer, sharing_.number));
}

void SharedUpdate::start_exchange(Side from, Side to) {
  if (const auto& box = blocks(from)[own_].box) {
    context_.kernels.issue(device::Copy{place(from, *box), place(to, *box)});
  }
  each_other([&](std::size_t index, int rank) {
    if (const auto& [box, values] = blocks(from)[index]; box) {
      context_.kernels.issue(device::Copy{place(from, *box), values});
      send(values, rank);
    }
    if (blocks(to)[index].box) receive(blocks(to)[index].values, rank);
  });
}

void SharedUpdate::finish_exchange(Side to) {
  each_other([&](std::size_t index, int) {
    if (const auto& [box, values] = blocks(to)[index]; box) {
      context_.kernels.issue(device::Copy{values, place(to, *box)});
    }
  });
}

void SharedUpdate::start_phase() {
  const auto [phase, run] = steps_[next_];
  switch (phase) {
    case Phase::norm:
      return start_norm();
    case Phase::columns:
      return start_exchange(Side::held, Side::slice);
    case Phase::terms:
      return start_terms(run);
    case Phase::factor:
      return start_factor(run);
    case Phase::held:
      transpose_tall(Side::held);
      return start_exchange(Side::slice, Side::held);
  }
}

void SharedUpdate::finish_phase() {
  for (auto& work : under_way_) work.wait_on_stream();
  under_way_.clear();
  const auto [phase, run] = steps_[next_++];
  switch (phase) {
    case Phase::norm:
      return divide_by_norm();
    case Phase::columns:
      finish_exchange(Side::slice);
      return transpose_tall(Side::slice);
    case Phase::terms:
      return add_terms(run);
    case Phase::factor:
      return apply_factor(run);
    case Phase::held:
      return finish_exchange(Side::held);
  }
}

void SharedUpdate::start_norm() {
  const double square = context_.kernels.sum_of_squares(held_.flat());
  const auto of = [&](std::size_t index) {
    return squares_.slice(0, static_cast<std::int64_t>(index), 1);
  };
  if (!context_.workspace.is_measuring()) std::memcpy(of(own_).raw(), &square, sizeof square);
  each_other([&](std::size_t index, int rank) {
    send(of(own_), rank);
    receive(of(index), rank);
  });
}

void SharedUpdate::divide_by_norm() {
  double sum = 0;
  if (!context_.workspace.is_measuring()) {
    std::vector<double> squares(sharing_.shares.size());
    std::memcpy(squares.data(), squares_.raw(), squares_.byte_count());
    for (const double square : squares) sum += square;
  }
  const float norm = static_cast<float>(std::sqrt(sum)) + context_.rule.eps;
  const auto held = held_.flat();
  // A mean with nothing before it.
  context_.kernels.issue(device::MeanMomentum{.beta = 0.0F,
                                              .step = device::MeanMomentum::Step::plain,
                                              .gradient_scale = 1.0F / norm,
                                              .gradient = held,
                                              .momentum = held,
                                              .update = held});
}

/// Columns of the longer side are a matrix with n rows, and what is held has the matrix's own.
void SharedUpdate::transpose_tall(Side to) {
  if (!is_tall() || !has_columns()) return;
  const auto rows = next_x_.reshape({1, x_.dim(2), x_.dim(1)});
  const bool forth = to == Side::slice;
  context_.kernels.issue(device::TransposeMatrices{forth ? rows : x_, forth ? x_ : rows});
}

void SharedUpdate::start_terms(std::size_t run) {
  if (has_columns()) {
    context_.kernels.issue(
        device::SymmetricProduct{.x = x_, .y = memory_.r, .triangles = context_.rule.triangles});
  }
  const int adds = sharing_.gram_ranks[run];
  if (!is_own(adds)) {
    if (has_columns()) send(memory_.r, adds);
    return;
  }
  if (!has_columns()) context_.kernels.issue(device::Fill{memory_.r, 0.0F});
  each_other([&](std::size_t index, int rank) {
    if (terms_[index]) receive(terms_[index], rank);
  });
}

/// The sum lies in the first term's place until the own one is in it, and then in that.
void SharedUpdate::add_terms(std::size_t run) {
  if (!is_own(sharing_.gram_ranks[run])) return;
  std::size_t first = 0;
  while (!terms_[first]) ++first;
  for (auto index = first + 1; index < terms_.size(); ++index) {
    if (!terms_[index]) continue;
    const auto& sum = index <= own_ ? terms_[first] : memory_.r;
    context_.kernels.issue(
        device::Add{sum, terms_[index], index < own_ ? terms_[first] : memory_.r});
  }
}

void SharedUpdate::start_factor(std::size_t run) {
  const int adds = sharing_.gram_ranks[run];
  if (!is_own(adds)) {
    if (has_columns()) receive(memory_.s, adds);
    return;
  }
  const auto [q, a] = gram_factor(context_.kernels, context_.rule, memory_, runs_[run]);
  if (q.raw() != memory_.s.raw()) context_.kernels.issue(device::Copy{q, memory_.s});
  each_other([&](std::size_t index, int rank) {
    if (sharing_.shares[index].slice.size() > 0) send(memory_.s, rank);
  });
}

void SharedUpdate::apply_factor(std::size_t run) {
  if (!has_columns()) return;
  context_.kernels.issue(
      device::AddProduct{memory_.s, x_, next_x_, constant_of(context_.rule, runs_[run])});
  std::swap(x_, next_x_);
}

/// Messages of all are started before any is waited for, so that no two ranks wait for each other.
bool run_phase(std::vector<SharedUpdate>& matrices) {
  for (auto& matrix : matrices) {
    if (!matrix.is_done()) matrix.start_phase();
  }
  bool more = false;
  for (auto& matrix : matrices) {
    if (!matrix.is_done()) matrix.finish_phase();
    more = more || !matrix.is_done();
  }
  return more;
}

}  // namespace trireme::optim
