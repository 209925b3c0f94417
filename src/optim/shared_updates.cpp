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

/// Box that a sharer computes.
layout::Box box_of(const ownership::MatrixShape& shape, const layout::FlatRange& slice) {
  if (shape.rows > shape.columns) return {{slice.begin, 0}, {slice.size(), shape.columns}};
  return {{0, slice.begin}, {shape.rows, slice.size()}};
}

}  // namespace

SharedUpdates::SharedUpdates(const NewtonSchulz& rule, DType products, comm::ProcessGroup& group,
                             device::Kernels& kernels, device::Arena& workspace)
    : rule_(rule), products_(products), group_(group), kernels_(kernels), workspace_(workspace) {}

void SharedUpdates::add(const ownership::MatrixShape& shape, const SharedMatrix& sharing,
                        const Tensor& held) {
  parts_.push_back(part_of(shape, sharing, held));
}

Tensor SharedUpdates::Part::in_held(const layout::Box& box) const {
  const auto& origin = own_sharer().held.offset;
  return held.slice(0, box.offset[0] - origin[0], box.length[0])
      .slice(1, box.offset[1] - origin[1], box.length[1]);
}

/// A box of the own slice: of a matrix with more rows than columns in `next`, as rows.
Tensor SharedUpdates::Part::in_slice(const layout::Box& box) const {
  const auto& slice = own_sharer().slice;
  if (is_tall()) {
    return next.reshape({slice.size(), shape.columns})
        .slice(0, box.offset[0] - slice.begin, box.length[0])
        .slice(1, box.offset[1], box.length[1]);
  }
  return x.reshape({shape.rows, slice.size()})
      .slice(0, box.offset[0], box.length[0])
      .slice(1, box.offset[1] - slice.begin, box.length[1]);
}

SharedUpdates::Part SharedUpdates::part_of(const ownership::MatrixShape& shape,
                                           const SharedMatrix& sharing, const Tensor& held) {
  const auto& sharers = sharing.sharers;
  const auto own = std::find_if(sharers.begin(), sharers.end(),
                                [&](const auto& sharer) { return sharer.rank == group_.rank(); });
  TRIREME_EXPECT(own != sharers.end(), "a rank shares what it holds a part of");
  const auto runs = runs_of(rule_, shape);
  TRIREME_EXPECT(runs.size() == sharing.square_ranks.size(), "a rank for the squares of each run");
  const auto n = shape.shorter();
  Part part{.sharing = &sharing,
            .own = static_cast<std::size_t>(own - sharers.begin()),
            .shape = shape,
            .held = held,
            .x = {},
            .next = {},
            .memory = GramMemory(workspace_, products_, 1, n, runs),
            .received = {},
            .sent = {},
            .terms = {},
            .squares = workspace_.allocate(DType::i32, {std::ssize(sharers), 2}),
            .runs = runs,
            .under_way = {}};
  if (part.has_columns()) {
    part.x = workspace_.allocate(products_, {1, n, own->slice.size()});
    part.next = workspace_.allocate(products_, {1, n, own->slice.size()});
  }
  const bool sums =
      std::count(sharing.square_ranks.begin(), sharing.square_ranks.end(), group_.rank()) > 0;
  const auto block_of = [&](const SharedMatrix::Sharer& holder,
                            const SharedMatrix::Sharer& computing) {
    Block block{layout::intersect(holder.held, box_of(shape, computing.slice)), {}};
    // Elements that a rank holds of its own slice are copied to their place.
    if (block.box && &holder != &computing) {
      block.values = workspace_.allocate(products_, {block.box->length[0], block.box->length[1]});
    }
    return block;
  };
  for (const auto& sharer : sharers) {
    part.received.push_back(block_of(sharer, *own));
    part.sent.push_back(block_of(*own, sharer));
    auto& term = part.terms.emplace_back();
    if (&sharer == &*own) {
      term = part.memory.r;
    } else if (sums && sharer.slice.size() > 0) {
      term = workspace_.allocate(products_, {1, n, n});
    }
  }
  return part;
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
  part.under_way.push_back(group_.start_send(x.flat(), peer, part.sharing->number));
}

void SharedUpdates::receive(Part& part, const Tensor& x, int peer) {
  part.under_way.push_back(group_.start_receive(x.flat(), peer, part.sharing->number));
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
  if (part.step + 1 == part.steps()) return start_held(part);
  const auto run = (part.step - 2) / 2;
  if (part.step % 2 == 0) return start_terms(part, run);
  start_factor(part, run);
}

void SharedUpdates::finish(Part& part) {
  if (part.step == 0) return divide_by_norm(part);
  if (part.step == 1) return finish_columns(part);
  if (part.step + 1 == part.steps()) return finish_held(part);
  const auto run = (part.step - 2) / 2;
  if (part.step % 2 == 0) return add_terms(part, run);
  apply_factor(part, run);
}

void SharedUpdates::start_norm(Part& part) {
  const double square = kernels_.sum_of_squares(part.held.flat());
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
  const auto held = part.held.flat();
  // A mean with nothing before it.
  kernels_.issue(device::MeanMomentum{.beta = 0.0F,
                                      .step = device::MeanMomentum::Step::plain,
                                      .gradient_scale = 1.0F / norm,
                                      .gradient = held,
                                      .momentum = held,
                                      .update = held});
}

/// From what ranks hold to columns of the longer side, as matrices with n rows.
void SharedUpdates::start_columns(Part& part) {
  if (const auto& box = part.received[part.own].box) {
    kernels_.issue(device::Copy{part.in_held(*box), part.in_slice(*box)});
  }
  each_other(part, [&](std::size_t index, int rank) {
    if (const auto& [box, values] = part.sent[index]; box) {
      kernels_.issue(device::Copy{part.in_held(*box), values});
      send(part, values, rank);
    }
    if (part.received[index].box) receive(part, part.received[index].values, rank);
  });
}

void SharedUpdates::finish_columns(const Part& part) {
  each_other(part, [&](std::size_t index, int) {
    if (const auto& [box, values] = part.received[index]; box) {
      kernels_.issue(device::Copy{values, part.in_slice(*box)});
    }
  });
  if (!part.is_tall() || !part.has_columns()) return;
  const auto rows = part.next.reshape({1, part.x.dim(2), part.x.dim(1)});
  kernels_.issue(device::TransposeMatrices{rows, part.x});
}

void SharedUpdates::start_terms(Part& part, std::size_t run) {
  const auto& r = part.memory.r;
  if (part.has_columns()) {
    kernels_.issue(device::SymmetricProduct{.x = part.x, .y = r, .triangles = rule_.triangles});
  }
  const int adds = part.sharing->square_ranks[run];
  if (!part.is_own(adds)) {
    if (part.has_columns()) send(part, r, adds);
    return;
  }
  if (!part.has_columns()) kernels_.issue(device::Fill{r, 0.0F});
  each_other(part, [&](std::size_t index, int rank) {
    if (part.terms[index]) receive(part, part.terms[index], rank);
  });
}

/// The sum lies in the first term's place until the own one is in it, and then in that.
void SharedUpdates::add_terms(const Part& part, std::size_t run) {
  if (!part.is_own(part.sharing->square_ranks[run])) return;
  const auto& terms = part.terms;
  std::size_t first = 0;
  while (!terms[first]) ++first;
  for (auto index = first + 1; index < terms.size(); ++index) {
    if (!terms[index]) continue;
    const auto& sum = index <= part.own ? terms[first] : part.memory.r;
    kernels_.issue(device::Add{sum, terms[index], index < part.own ? terms[first] : part.memory.r});
  }
}

void SharedUpdates::start_factor(Part& part, std::size_t run) {
  const int adds = part.sharing->square_ranks[run];
  if (!part.is_own(adds)) {
    if (part.has_columns()) receive(part, part.memory.s, adds);
    return;
  }
  const auto [q, a] = gram_factor(kernels_, rule_, part.memory, part.runs[run]);
  if (q.raw() != part.memory.s.raw()) kernels_.issue(device::Copy{q, part.memory.s});
  each_other(part, [&](std::size_t index, int rank) {
    if (part.sharing->sharers[index].slice.size() > 0) send(part, part.memory.s, rank);
  });
}

void SharedUpdates::apply_factor(Part& part, std::size_t run) {
  if (!part.has_columns()) return;
  kernels_.issue(
      device::AddProduct{part.memory.s, part.x, part.next, constant_of(rule_, part.runs[run])});
  std::swap(part.x, part.next);
}

/// The exchange of start_columns() backwards.
void SharedUpdates::start_held(Part& part) {
  if (part.is_tall() && part.has_columns()) {
    const auto rows = part.next.reshape({1, part.x.dim(2), part.x.dim(1)});
    kernels_.issue(device::TransposeMatrices{part.x, rows});
  }
  if (const auto& box = part.received[part.own].box) {
    kernels_.issue(device::Copy{part.in_slice(*box), part.in_held(*box)});
  }
  each_other(part, [&](std::size_t index, int rank) {
    if (const auto& [box, values] = part.received[index]; box) {
      kernels_.issue(device::Copy{part.in_slice(*box), values});
      send(part, values, rank);
    }
    if (part.sent[index].box) receive(part, part.sent[index].values, rank);
  });
}

void SharedUpdates::finish_held(const Part& part) {
  each_other(part, [&](std::size_t index, int) {
    if (const auto& [box, values] = part.sent[index]; box) {
      kernels_.issue(device::Copy{values, part.in_held(*box)});
    }
  });
}

}  // namespace trireme::optim
