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

Tensor flat(const Tensor& x) {
  return x.reshape({x.element_count()});
}

}  // namespace

SharedUpdates::SharedUpdates(const NewtonSchulz& rule, DType products, comm::ProcessGroup& group,
                             device::Kernels& kernels, device::Arena& workspace)
    : rule_(rule), products_(products), group_(group), kernels_(kernels), workspace_(workspace) {}

void SharedUpdates::add(const layout::MatrixShape& shape, const SharedMatrix& sharing,
                        const Tensor& rows) {
  parts_.push_back(part_of(shape, sharing, rows));
}

SharedUpdates::Part SharedUpdates::part_of(const layout::MatrixShape& shape,
                                           const SharedMatrix& sharing, const Tensor& rows) {
  const auto& sharers = sharing.sharers;
  const auto own = std::find_if(sharers.begin(), sharers.end(),
                                [&](const auto& sharer) { return sharer.rank == group_.rank(); });
  TRIREME_EXPECT(own != sharers.end(), "a rank shares what it holds rows of");
  const auto runs = runs_of(rule_, shape);
  TRIREME_EXPECT(runs.size() == sharing.square_ranks.size(), "a rank for the squares of each run");
  const auto n = shape.shorter();
  const auto columns = own->slice.size();
  Part part{.sharing = &sharing,
            .own = static_cast<std::size_t>(own - sharers.begin()),
            .tall = shape.rows > shape.columns,
            .n = n,
            .rows = rows,
            .x = workspace_.allocate(products_, {1, n, columns}),
            .next = workspace_.allocate(products_, {1, n, columns}),
            .memory = GramMemory(workspace_, products_, 1, n, runs),
            .received = {},
            .sent = {},
            .terms = {},
            .squares = workspace_.allocate(DType::i32, {std::ssize(sharers), 2}),
            .runs = runs,
            .under_way = {}};
  const bool sums =
      std::count(sharing.square_ranks.begin(), sharing.square_ranks.end(), group_.rank()) > 0;
  for (const auto& sharer : sharers) {
    const bool is_other = sharer.rank != group_.rank();
    part.terms.push_back(sums && is_other ? workspace_.allocate(products_, {1, n, n})
                                          : part.memory.r);
    if (part.tall) continue;
    part.received.push_back(workspace_.allocate(products_, {sharer.rows.size(), columns}));
    part.sent.push_back(workspace_.allocate(products_, {rows.dim(0), sharer.slice.size()}));
  }
  return part;
}

bool SharedUpdates::is_own(const Part& part, int rank) const {
  return part.sharing->sharers[part.own].rank == rank;
}

/// act(index of the sharer, its rank) for all others.
template <typename Act>
void SharedUpdates::each_other(const Part& part, const Act& act) {
  for (std::size_t index = 0; index < part.sharing->sharers.size(); ++index) {
    if (index != part.own) act(index, part.sharing->sharers[index].rank);
  }
}

/// Messages of a matrix between two ranks match in the order of their start.
void SharedUpdates::send(Part& part, const Tensor& x, int peer) {
  part.under_way.push_back(group_.start_send(flat(x), peer, part.sharing->number));
}

void SharedUpdates::receive(Part& part, const Tensor& x, int peer) {
  part.under_way.push_back(group_.start_receive(flat(x), peer, part.sharing->number));
}

/// In each step what is sent is started before anything is waited for, so that no two ranks wait
/// for each other.
bool SharedUpdates::advance() {
  bool more = false;
  for (auto& part : parts_) {
    if (part.step < part.steps()) start(part);
  }
  for (auto& part : parts_) {
    if (part.step == part.steps()) continue;
    for (auto& work : part.under_way) work.wait_on_stream();
    part.under_way.clear();
    finish(part);
    ++part.step;
    more = more || part.step < part.steps();
  }
  return more;
}

void SharedUpdates::start(Part& part) {
  if (part.step == 0) return start_norm(part);
  if (part.step == 1) return start_columns(part);
  if (part.step + 1 == part.steps()) return start_rows(part);
  const auto run = (part.step - 2) / 2;
  if (part.step % 2 == 0) return start_terms(part, run);
  start_factor(part, run);
}

void SharedUpdates::finish(Part& part) {
  if (part.step == 0) return divide_by_norm(part);
  if (part.step == 1) return finish_columns(part);
  if (part.step + 1 == part.steps()) return finish_rows(part);
  const auto run = (part.step - 2) / 2;
  if (part.step % 2 == 0) return add_terms(part, run);
  apply_factor(part, run);
}

void SharedUpdates::start_norm(Part& part) {
  const double square = kernels_.sum_of_squares(flat(part.rows));
  const auto of = [&](std::size_t index) {
    return part.squares.slice(0, static_cast<std::int64_t>(index), 1);
  };
  if (!workspace_.is_measuring()) std::memcpy(of(part.own).raw(), &square, sizeof square);
  each_other(part, [&](std::size_t index, int rank) {
    send(part, of(part.own), rank);
    receive(part, of(index), rank);
  });
}

void SharedUpdates::divide_by_norm(const Part& part) {
  double sum = 0;
  if (!workspace_.is_measuring()) {
    std::vector<double> squares(part.sharing->sharers.size());
    std::memcpy(squares.data(), part.squares.raw(), part.squares.byte_count());
    for (const double square : squares) sum += square;
  }
  const float norm = static_cast<float>(std::sqrt(sum)) + rule_.eps;
  const auto rows = flat(part.rows);
  // A mean with nothing before it.
  kernels_.issue(
      device::MeanMomentum{0.0F, device::MeanMomentum::Step::plain, 1.0F / norm, rows, rows, rows});
}

/// From rows to columns of the longer side, as matrices with n rows.
void SharedUpdates::start_columns(Part& part) {
  const auto& own = part.sharing->sharers[part.own];
  if (part.tall) {
    const auto rounded = part.next.reshape({1, own.rows.size(), part.n});
    kernels_.issue(device::Copy{part.rows, rounded.reshape({own.rows.size(), part.n})});
    kernels_.issue(device::TransposeMatrices{rounded, part.x});
    return;
  }
  const auto columns_of = [&](std::size_t index) {
    const auto& slice = part.sharing->sharers[index].slice;
    return part.rows.slice(1, slice.begin, slice.size());
  };
  kernels_.issue(device::Copy{columns_of(part.own), part.received[part.own]});
  each_other(part, [&](std::size_t index, int rank) {
    kernels_.issue(device::Copy{columns_of(index), part.sent[index]});
    send(part, part.sent[index], rank);
    receive(part, part.received[index], rank);
  });
}

void SharedUpdates::finish_columns(const Part& part) {
  if (part.tall) return;
  const auto x = part.x.reshape({part.n, part.x.dim(2)});
  for (std::size_t index = 0; index < part.received.size(); ++index) {
    const auto& rows = part.sharing->sharers[index].rows;
    kernels_.issue(device::Copy{part.received[index], x.slice(0, rows.begin, rows.size())});
  }
}

void SharedUpdates::start_terms(Part& part, std::size_t run) {
  kernels_.issue(device::SymmetricProduct{part.x, {}, part.memory.r, 1.0F, 0.0F, rule_.triangles});
  const int adds = part.sharing->square_ranks[run];
  if (!is_own(part, adds)) return send(part, part.memory.r, adds);
  each_other(part, [&](std::size_t index, int rank) { receive(part, part.terms[index], rank); });
}

void SharedUpdates::add_terms(const Part& part, std::size_t run) {
  if (!is_own(part, part.sharing->square_ranks[run])) return;
  const auto& terms = part.terms;
  for (std::size_t index = 1; index < terms.size(); ++index) {
    // The sum lies in the first term's place until the own one is in it, and then in that.
    const auto& sum = index <= part.own ? terms[0] : part.memory.r;
    kernels_.issue(device::Add{sum, terms[index], index < part.own ? terms[0] : part.memory.r});
  }
}

void SharedUpdates::start_factor(Part& part, std::size_t run) {
  const int adds = part.sharing->square_ranks[run];
  if (!is_own(part, adds)) return receive(part, part.memory.s, adds);
  const auto [q, a] = gram_factor(kernels_, rule_, part.memory, part.runs[run]);
  if (q.raw() != part.memory.s.raw()) kernels_.issue(device::Copy{q, part.memory.s});
  each_other(part, [&](std::size_t, int rank) { send(part, part.memory.s, rank); });
}

void SharedUpdates::apply_factor(Part& part, std::size_t run) {
  kernels_.issue(
      device::AddProduct{part.memory.s, part.x, part.next, constant_of(rule_, part.runs[run])});
  std::swap(part.x, part.next);
}

/// What start_columns() did, backwards.
void SharedUpdates::start_rows(Part& part) {
  const auto& own = part.sharing->sharers[part.own];
  if (part.tall) {
    const auto back = part.next.reshape({1, own.rows.size(), part.n});
    kernels_.issue(device::TransposeMatrices{part.x, back});
    kernels_.issue(device::Copy{back.reshape({own.rows.size(), part.n}), part.rows});
    return;
  }
  const auto x = part.x.reshape({part.n, part.x.dim(2)});
  for (std::size_t index = 0; index < part.received.size(); ++index) {
    const auto& rows = part.sharing->sharers[index].rows;
    kernels_.issue(device::Copy{x.slice(0, rows.begin, rows.size()), part.received[index]});
  }
  each_other(part, [&](std::size_t index, int rank) {
    send(part, part.received[index], rank);
    receive(part, part.sent[index], rank);
  });
}

void SharedUpdates::finish_rows(const Part& part) {
  if (part.tall) return;
  for (std::size_t index = 0; index < part.sent.size(); ++index) {
    const auto& slice = part.sharing->sharers[index].slice;
    const auto& from = index == part.own ? part.received[index] : part.sent[index];
    kernels_.issue(device::Copy{from, part.rows.slice(1, slice.begin, slice.size())});
  }
}

}  // namespace trireme::optim
