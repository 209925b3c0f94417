// SPDX-License-Identifier: Apache-2.0
// Properties of every plan of owners, over random shapes and degrees.
#include "trireme/ownership/plan.hpp"

#include "unit/ownership/owned_shapes.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <random>

using namespace trireme;
using namespace trireme::ownership;
using namespace trireme::tests;

namespace {

struct Problem {
  std::vector<OwnedTensor> tensors;
  PlanOptions options;
};

class ProblemMaker {
 public:
  Problem next() {
    Problem problem;
    auto& options = problem.options;
    const int degrees[] = {1, 2, 3, 4, 6, 7, 8, 12, 32};
    options.data = degrees[draw(0, 8)];
    options.tensor = draw(0, 1) == 0 ? 1 : draw(2, 4);
    options.bucket_elements = draw(1, 60'000);
    options.alignment = draw(0, 1) == 0 ? 1 : 64;
    options.least_columns = draw(1, 64);
    options.group_bytes = draw(1, 200'000);
    options.alpha = draw(0, 4) / 4.0;
    options.order = draw(0, 1) == 0 ? BucketOrder::by_owner : BucketOrder::of_backward;
    const int count = draw(0, 40);
    for (int at = 0; at < count; ++at) {
      problem.tensors.push_back(tensor(options.tensor));
      auto& tensor = problem.tensors.back();
      tensor.begins_bucket = draw(0, 15) == 0;
      tensor.joined = options.tensor == 1 && at > 0 && draw(0, 2) == 0 && !tensor.begins_bucket &&
                      can_be_followed(problem.tensors[static_cast<std::size_t>(at) - 1], options);
      tensor.joined = tensor.joined && tensor.is_matrix();
    }
    if (draw(0, 2) == 0) renew(problem.tensors);
    return problem;
  }

 private:
  static bool can_be_followed(const OwnedTensor& tensor, const PlanOptions& options) {
    return tensor.is_matrix() && tensor.held_elements % options.alignment == 0;
  }
  /// Matrices that cannot be shared, of few kinds, so that some are alike, with work in turns.
  void renew(std::vector<OwnedTensor>& tensors) {
    for (auto& tensor : tensors) {
      if (!tensor.is_matrix()) continue;
      tensor.split = {};
      tensor.flops = draw(1, 3);
      tensor.renewals = {{tensor.flops, 4, draw(0, 3)}};
    }
  }
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }

  OwnedTensor tensor(int degree) {
    if (draw(0, 3) == 0) return vector("v", draw(0, 5000));
    const auto side = [&] { return draw(0, 9) == 0 ? 1 : draw(1, 200); };
    const auto form =
        draw(0, 4) == 0 ? NewtonSchulzForm::standard : NewtonSchulzForm::gram_symmetric;
    return matrix("m", side(), side(), form, degree);
  }

  std::mt19937_64 engine_{16};
};

/// Coordinate along dp of the shard that holds [begin, end) of the buffer; -1: no single one does.
int shard_of(const Plan& plan, std::int64_t begin, std::int64_t end) {
  for (const auto& bucket : plan.buckets) {
    for (std::size_t at = 0; at + 1 < bucket.cuts.size(); ++at) {
      if (begin >= bucket.cuts[at] && end <= bucket.cuts[at + 1]) return static_cast<int>(at);
    }
  }
  return -1;
}

void check_owners(const Problem& problem, const Plan& plan) {
  const auto& [tensors, options] = problem;
  std::vector<double> load(static_cast<std::size_t>(options.data * options.tensor), 0.0);
  std::vector<std::size_t> owned;
  for (const auto& owner : plan.matrices) {
    owned.push_back(owner.tensor);
    const auto& tensor = tensors[owner.tensor];
    REQUIRE_FALSE(owner.ranges.empty());
    CHECK((owner.ranges.size() == 1 || owner.is_shared()));
    // Without tensor parallelism any neighbours share.
    const int group = options.tensor > 1 ? options.tensor : options.data;
    std::int64_t end = 0;
    for (const auto& range : owner.ranges) {
      CHECK(range.begin == end);
      CHECK(range.end > range.begin);
      end = range.end;
      REQUIRE((range.rank >= 0 && range.rank < options.data * options.tensor));
      CHECK(range.rank / group == owner.ranges.front().rank / group);
      load[static_cast<std::size_t>(range.rank)] +=
          owner.is_shared()
              ? static_cast<double>(range.end - range.begin) * tensor.split.of_column()
              : tensor.flops;
    }
    CHECK(end == tensor.shape.longer());
    if (!owner.is_shared()) continue;
    CHECK(plan.assignment == Assignment::shared);
    REQUIRE(owner.square_ranks.size() == tensor.split.square.size());
    for (std::size_t at = 0; at < owner.square_ranks.size(); ++at) {
      CHECK(owner.square_ranks[at] / group == owner.ranges.front().rank / group);
      load[static_cast<std::size_t>(owner.square_ranks[at])] += tensor.split.square[at];
    }
  }
  std::vector<std::size_t> matrices;
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    if (tensors[at].is_matrix()) matrices.push_back(at);
  }
  CHECK(owned == matrices);
  REQUIRE(plan.load.size() == load.size());
  for (std::size_t rank = 0; rank < load.size(); ++rank) {
    CHECK(plan.load[rank] == Approx(load[rank]).epsilon(1e-9).margin(1e-6));
  }
}

/// The shards that a tensor's elements must lie in, by ranges of elements: its owners'.
struct Wanted {
  std::int64_t begin;
  std::int64_t end;
  int shard;
};
std::vector<Wanted> wanted(const Problem& problem, const MatrixOwner& owner) {
  const auto& tensor = problem.tensors[owner.tensor];
  const int degree = problem.options.tensor;
  if (degree > 1 || !owner.is_shared()) {
    return {{0, tensor.held_elements, owner.ranges.front().rank / degree}};
  }
  REQUIRE(owner.rows.size() == owner.ranges.size());
  std::vector<Wanted> all;
  for (std::size_t part = 0; part < owner.ranges.size(); ++part) {
    const auto& [rank, begin, end] = owner.ranges[part];
    const auto& rows = owner.rows[part];
    CHECK(slice_of_rows(tensor.shape, rows) == layout::FlatRange{begin, end});
    all.push_back({rows.begin * tensor.shape.columns, rows.end * tensor.shape.columns, rank});
  }
  return all;
}

void check_pieces(const Problem& problem, const Plan& plan) {
  const auto& tensors = problem.tensors;
  std::vector<std::vector<OwnedPiece>> of_tensor(tensors.size());
  std::int64_t at = 0;
  for (const auto& piece : plan.pieces) {
    CHECK(piece.flat_begin >= at);
    CHECK(piece.flat_begin % problem.options.alignment == 0);
    at = piece.flat_begin + piece.end - piece.begin;
    of_tensor[piece.tensor].push_back(piece);
  }
  CHECK(at <= plan.size());
  for (auto& pieces : of_tensor) {
    std::sort(pieces.begin(), pieces.end(),
              [](const OwnedPiece& a, const OwnedPiece& b) { return a.begin < b.begin; });
  }
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    std::int64_t end = 0;
    for (const auto& piece : of_tensor[tensor]) {
      CHECK(piece.begin == end);
      end = piece.end;
    }
    CHECK(end == tensors[tensor].held_elements);
  }
  for (const auto& owner : plan.matrices) {
    const auto& pieces = of_tensor[owner.tensor];
    const auto all = wanted(problem, owner);
    REQUIRE(pieces.size() == all.size());
    for (std::size_t part = 0; part < all.size(); ++part) {
      CHECK(pieces[part].begin == all[part].begin);
      CHECK(pieces[part].end == all[part].end);
      const auto begin = pieces[part].flat_begin;
      CHECK(shard_of(plan, begin, begin + pieces[part].end - pieces[part].begin) ==
            all[part].shard);
    }
  }
}

/// Matrices, and joined ones behind each other, lie without a gap.
void check_joined(const Problem& problem, const Plan& plan) {
  std::vector<OwnedPiece> of_tensor(problem.tensors.size(), OwnedPiece{.begin = -1});
  for (const auto& piece : plan.pieces) {
    auto& whole = of_tensor[piece.tensor];
    if (!problem.tensors[piece.tensor].is_matrix()) continue;
    if (whole.begin < 0) {
      whole = piece;
      continue;
    }
    CHECK(piece.flat_begin == whole.flat_begin + whole.end - whole.begin);
    whole.end = piece.end;
  }
  for (std::size_t at = 1; at < problem.tensors.size(); ++at) {
    if (!problem.tensors[at].joined) continue;
    const auto& before = of_tensor[at - 1];
    CHECK(of_tensor[at].flat_begin == before.flat_begin + before.end - before.begin);
  }
}

/// No bucket holds tensors on both sides of one that begins a bucket.
void check_borders(const Problem& problem, const Plan& plan) {
  std::vector<int> part;
  for (const auto& tensor : problem.tensors) {
    part.push_back((part.empty() ? 0 : part.back()) + (tensor.begins_bucket ? 1 : 0));
  }
  for (const auto& bucket : plan.buckets) {
    int parts = -1;
    for (const auto& piece : plan.pieces) {
      if (piece.flat_begin < bucket.flat.begin || piece.flat_begin >= bucket.flat.end) continue;
      if (parts < 0) parts = part[piece.tensor];
      CHECK(part[piece.tensor] == parts);
    }
  }
}

void check_buckets(const Problem& problem, const Plan& plan) {
  const auto shards = static_cast<std::size_t>(problem.options.data);
  std::int64_t at = 0;
  for (const auto& [flat, cuts] : plan.buckets) {
    CHECK(flat.begin == at);
    at = flat.end;
    REQUIRE(cuts.size() == shards + 1);
    CHECK(cuts.front() == flat.begin);
    CHECK(cuts.back() == flat.end);
    CHECK(std::is_sorted(cuts.begin(), cuts.end()));
    if (plan.assignment != Assignment::padded) continue;
    for (std::size_t shard = 0; shard < shards; ++shard) {
      CHECK(cuts[shard + 1] - cuts[shard] == flat.size() / problem.options.data);
      CHECK(cuts[shard] % problem.options.alignment == 0);
    }
  }
  std::int64_t elements = 0;
  for (const auto& tensor : problem.tensors) elements += tensor.held_elements;
  CHECK(plan.elements == elements);
}

/// Each rank sends to each other the gradients of the other's shard, and the parameters of its own.
double counted_bytes(const Plan& plan) {
  double bytes = 0;
  for (const auto& [flat, cuts] : plan.buckets) {
    for (int from = 0; from < plan.data; ++from) {
      for (int to = 0; to < plan.data; ++to) {
        if (from == to) continue;
        const auto length = [&](int shard) {
          const auto index = static_cast<std::size_t>(shard);
          return static_cast<double>(cuts[index + 1] - cuts[index]);
        };
        bytes += 4 * length(to) + 2 * length(from);
      }
    }
  }
  return bytes * plan.tensor;
}

}  // namespace

TEST_CASE("every matrix has its owners, its place and its part of the load, whatever the shapes") {
  ProblemMaker maker;
  for (int round = 0; round < 400; ++round) {
    const auto problem = maker.next();
    for (const auto each : all_assignments) {
      const auto plan = make_plan(problem.tensors, problem.options, each);
      INFO("round " << round << ", " << name(each) << ", dp " << plan.data << ", tp "
                    << plan.tensor);
      CHECK(plan.assignment == each);
      check_owners(problem, plan);
      check_buckets(problem, plan);
      check_borders(problem, plan);
      check_pieces(problem, plan);
      check_joined(problem, plan);
      CHECK(bytes_on_wire(plan, 2) == Approx(counted_bytes(plan)));
    }
  }
}

TEST_CASE("bytes on the wire are those of ZeRO level 1, and of padding") {
  ProblemMaker maker;
  for (int round = 0; round < 100; ++round) {
    const auto problem = maker.next();
    double elements = 0;
    for (const auto& tensor : problem.tensors) {
      elements += static_cast<double>(tensor.held_elements);
    }
    for (const auto each : all_assignments) {
      const auto plan = make_plan(problem.tensors, problem.options, each);
      const double zero = elements * 6 * (plan.data - 1) * plan.tensor;
      CHECK(bytes_on_wire(plan, 2) == Approx(zero * (1 + plan.padding())));
    }
  }
}

TEST_CASE("a plan is the same each time, and names do not matter") {
  ProblemMaker maker;
  for (int round = 0; round < 40; ++round) {
    auto problem = maker.next();
    for (const auto each : all_assignments) {
      const auto plan = make_plan(problem.tensors, problem.options, each);
      std::size_t number = problem.tensors.size();
      for (auto& tensor : problem.tensors) tensor.name = std::to_string(number-- * 7919 % 101);
      const auto again = make_plan(problem.tensors, problem.options, each);
      CHECK(plan.matrices == again.matrices);
      CHECK(plan.pieces == again.pieces);
      CHECK(plan.buckets == again.buckets);
      CHECK(plan.load == again.load);
    }
  }
}

TEST_CASE("one rank owns everything, and pads for alignment alone") {
  const std::vector<OwnedTensor> tensors{matrix("a", 64, 128, NewtonSchulzForm::gram_symmetric),
                                         vector("norm", 65),
                                         matrix("b", 3, 5, NewtonSchulzForm::gram_symmetric)};
  for (const auto each : all_assignments) {
    INFO(name(each));
    const auto plan = make_plan(tensors, of_degrees(1), each);
    CHECK(plan.max_over_mean() == 1.0);
    CHECK(plan.size() == 64 * 128 + 128 + 64);
    CHECK(bytes_on_wire(plan, 2) == 0);
    for (const auto& owner : plan.matrices) CHECK(owner.ranges.front().rank == 0);
  }
}
