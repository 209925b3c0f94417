// SPDX-License-Identifier: Apache-2.0
// How evenly plans of owners divide work, on shapes of models and on ones worked by hand.
#include "trireme/ownership/plan.hpp"

#include "unit/ownership/owned_shapes.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <numeric>

using namespace trireme;
using namespace trireme::ownership;
using namespace trireme::tests;

namespace {

/// Largest load over the mean of whole matrices, longest processing time first, without buckets.
double longest_first(const std::vector<OwnedTensor>& tensors, int ranks) {
  std::vector<double> flops;
  for (const auto& tensor : tensors) {
    if (tensor.is_matrix()) flops.push_back(tensor.flops);
  }
  std::sort(flops.rbegin(), flops.rend());
  std::vector<double> load(static_cast<std::size_t>(ranks), 0.0);
  for (const double each : flops) *std::min_element(load.begin(), load.end()) += each;
  return *std::max_element(load.begin(), load.end()) * ranks /
         std::accumulate(flops.begin(), flops.end(), 0.0);
}

}  // namespace

TEST_CASE("whole matrices are never divided worse than by longest processing time first") {
  for (const auto& sizes : qwen3_sizes) {
    for (const int ranks : {2, 3, 8, 12, 32, 256}) {
      const auto tensors = tensors_of(sizes, standard);
      const auto plan = make_plan(tensors, of_degrees(ranks), Assignment::padded);
      INFO(sizes.name << " on " << ranks);
      CHECK(plan.max_over_mean() <= longest_first(tensors, ranks) * (1 + 1e-9));
    }
  }
}

TEST_CASE("up to 32 ranks equal shards of whole matrices need at most 3 % padding") {
  for (const auto& sizes : qwen3_sizes) {
    for (const int ranks : {2, 4, 8, 16, 32}) {
      INFO(sizes.name << " on " << ranks);
      const auto plan = make_plan(tensors_of(sizes, gram), of_degrees(ranks), Assignment::padded);
      CHECK(plan.padding() <= 0.03);
    }
  }
}

TEST_CASE("256 ranks of Qwen3-32B differ by at most 6 % without a shared matrix") {
  const auto plan =
      make_plan(tensors_of(qwen3_sizes[5], standard), of_degrees(256), Assignment::padded);
  CHECK(plan.max_over_mean() <= 1.06);
  CHECK(plan.padding() <= 0.03);
}

TEST_CASE("with shared matrices 256 ranks of every size differ by at most 10 %") {
  for (const auto& sizes : qwen3_sizes) {
    for (const auto& [data, tensor] : {std::pair{256, 1}, std::pair{32, 8}}) {
      INFO(sizes.name << " on " << data << " x " << tensor);
      const auto plan =
          make_plan(tensors_of(sizes, gram, tensor), of_degrees(data, tensor), Assignment::shared);
      CHECK(plan.max_over_mean() <= 1.10);
      CHECK(plan.padding() <= 0.03);
    }
  }
}

TEST_CASE("what exchanges of two matrices miss is found by dividing two ranks anew") {
  // Costs 5, 5, 3, 3, 3, 1 on two ranks: 5, 3, 3 and 5, 3, 1 at first, which no exchange of two
  // betters; at best 5, 5 and 3, 3, 3, 1.
  std::vector<OwnedTensor> tensors;
  for (const int cost : {5, 5, 3, 3, 3, 1}) {
    tensors.push_back(matrix("m", 1, 1, standard));
    tensors.back().flops = cost;
  }
  auto options = of_degrees(2);
  options.most_padding = 1;
  const auto plan = make_plan(tensors, options, Assignment::padded);
  CHECK(plan.load == std::vector<double>{10, 10});
}

TEST_CASE("loads are carried from bucket to bucket") {
  // Three equal matrices a bucket on two ranks: two and one, then one and two.
  std::vector<OwnedTensor> tensors;
  for (int at = 0; at < 6; ++at) tensors.push_back(matrix("m", 64, 64, standard));
  auto options = of_degrees(2);
  options.bucket_elements = 3 * 64 * 64;
  options.most_padding = 0.5;
  const auto plan = make_plan(tensors, options, Assignment::padded);
  CHECK(plan.buckets.size() == 2);
  CHECK(plan.max_over_mean() == 1.0);
  CHECK(plan.padding() == Approx(1.0 / 3));
}

TEST_CASE("buckets grow until padding is small, and a lone one has what cannot be avoided") {
  std::vector<OwnedTensor> tensors;
  for (int at = 0; at < 6; ++at) tensors.push_back(matrix("m", 64, 64, standard));
  auto options = of_degrees(2);
  options.bucket_elements = 1;
  CHECK(make_plan(tensors, options, Assignment::padded).buckets.size() == 3);
  tensors.pop_back();
  const auto odd = make_plan(tensors, options, Assignment::padded);
  CHECK(odd.buckets.size() == 1);
  CHECK(odd.padding() == Approx(0.2));
  tensors.push_back(vector("embedding", 64 * 64));
  CHECK(make_plan(tensors, options, Assignment::padded).padding() == 0.0);
}

TEST_CASE("contiguous ranges are never divided worse than by longest processing time first") {
  for (const auto form : {standard, gram}) {
    for (const auto& sizes : qwen3_sizes) {
      for (const int ranks : {2, 3, 8, 12, 32, 256}) {
        const auto tensors = joined(tensors_of(sizes, form));
        const auto plan = make_plan(tensors, of_degrees(ranks), Assignment::contiguous);
        INFO(sizes.name << " on " << ranks << ", form " << name(form));
        CHECK(plan.max_over_mean() <= longest_first(tensors, ranks) * (1 + 1e-9));
        CHECK(plan.padding() < 1e-4);
      }
    }
  }
}

TEST_CASE("q, k, v and gate, up of 0.6B on 128 ranks keep longest processing time's balance") {
  // With the standard form loads of 6, 10 and 14 in units of 1024^3 FLOPs, and ranks of at most 20:
  // 14 and 6, or 10 and 10. Few orders of the matrices allow that.
  for (const auto form : {standard, gram}) {
    const auto tensors = joined(tensors_of(qwen3_sizes[0], form));
    for (const auto assignment : {Assignment::contiguous, Assignment::padded}) {
      const auto plan = make_plan(tensors, of_degrees(128), assignment);
      INFO(name(assignment) << ", form " << name(form));
      CHECK(plan.max_over_mean() <= longest_first(tensors, 128) * (1 + 1e-9));
      CHECK(plan.padding() <= 0.03);
    }
  }
}

TEST_CASE("1.7B on 24 and 32 ranks is within 1 % of what its matrices allow") {
  // 0.13 % over the mean on 24 ranks, 0.63 % on 32, where no exchange of matrices leads from
  // longest processing time first.
  const auto tensors = joined(tensors_of(qwen3_sizes[1], standard));
  for (const auto assignment : {Assignment::contiguous, Assignment::padded}) {
    INFO(name(assignment));
    CHECK(make_plan(tensors, of_degrees(24), assignment).max_over_mean() <= 1.0113);
    CHECK(make_plan(tensors, of_degrees(32), assignment).max_over_mean() <= 1.0155);
  }
}

TEST_CASE("contiguous ranges of 256 ranks of Qwen3-32B differ by at most 6 %, in many buckets") {
  for (const auto form : {standard, gram}) {
    const auto plan = make_plan(joined(tensors_of(qwen3_sizes[5], form)), of_degrees(256),
                                Assignment::contiguous);
    CHECK(plan.max_over_mean() <= 1.06);
    CHECK(plan.buckets.size() > 200);
  }
}

TEST_CASE("contiguous ranges bound the state of a rank, not its work alone") {
  // Work is that of the large ones; the small ones are most of the elements.
  std::vector<OwnedTensor> tensors;
  for (int at = 0; at < 3; ++at) tensors.push_back(matrix("large", 512, 512, standard));
  for (int at = 0; at < 256; ++at) tensors.push_back(matrix("small", 8, 1024, standard));
  const auto plan = make_plan(tensors, of_degrees(4), Assignment::contiguous);
  const auto& cuts = plan.buckets.front().cuts;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(cuts[rank + 1] - cuts[rank] <= plan.elements / 4 * 5 / 4);
  }
}

TEST_CASE("cuts lie at the border nearest to a rank's share of the work") {
  const std::vector<OwnedTensor> tensors{
      matrix("a", 64, 64, standard), matrix("b", 64, 64, standard), matrix("c", 64, 64, standard),
      matrix("d", 64, 64, standard), matrix("e", 64, 192, standard)};
  auto options = of_degrees(2);
  options.order = BucketOrder::of_backward;
  // Costs 6, 6, 6, 6, 14: halves of 19 meet between c and d (18) better than behind d (24).
  const auto plan = make_plan(tensors, options, Assignment::contiguous);
  std::vector<int> ranks;
  for (const auto& owner : plan.matrices) ranks.push_back(owner.ranges.front().rank);
  CHECK(ranks == std::vector<int>{0, 0, 0, 1, 1});
  CHECK(plan.padding() == 0.0);
}

TEST_CASE("alpha chooses between balance over all buckets and equal parts of each") {
  // One bucket of a matrix three times as large, then three small ones: rank 0 has its share.
  std::vector<OwnedTensor> tensors{matrix("large", 64, 4 * 64, standard)};
  for (int at = 0; at < 4; ++at) tensors.push_back(matrix("small", 64, 64, standard));
  auto options = of_degrees(2);
  options.bucket_elements = 4 * 64 * 64;
  options.order = BucketOrder::of_backward;
  const auto small_of_rank_0 = [&](double alpha) {
    options.alpha = alpha;
    const auto plan = make_plan(tensors, options, Assignment::contiguous);
    return std::count_if(plan.matrices.begin() + 1, plan.matrices.end(), [&](const auto& owner) {
      return owner.ranges.front().rank == plan.matrices[0].ranges.front().rank;
    });
  };
  CHECK(small_of_rank_0(0) == 2);
  CHECK(small_of_rank_0(1) == 1);
}

TEST_CASE("micro-groups hold a bounded part of each owner's matrices") {
  auto options = of_degrees(2, 4);
  const auto tensors = tensors_of(qwen3_sizes[0], gram, 4);
  const auto groups_with = [&](std::int64_t bytes) {
    options.group_bytes = bytes;
    const auto plan = make_plan(tensors, options, Assignment::padded);
    std::map<std::pair<int, int>, std::vector<std::int64_t>> sizes;  // by group and owner
    int groups = 0;
    for (const auto& owner : plan.matrices) {
      groups = std::max(groups, owner.micro_group + 1);
      const auto& shape = tensors[owner.tensor].shape;
      sizes[{owner.micro_group, owner.ranges.front().rank}].push_back(4 * shape.rows *
                                                                      shape.columns);
    }
    for (const auto& [group, each] : sizes) {
      const auto all = std::accumulate(each.begin(), each.end(), std::int64_t{0});
      CHECK((all <= bytes || each.size() == 1));
    }
    return groups;
  };
  CHECK(groups_with(std::int64_t{1} << 30) == 1);
  const int of_64_mib = groups_with(std::int64_t{64} << 20);
  CHECK(of_64_mib > 1);
  CHECK(groups_with(1) > of_64_mib);
}

TEST_CASE("matrices that one product reads lie side by side, and each has an owner") {
  // Two layers of Qwen3-32B on eight ranks, as 64 of them on 256: gate and up on two neighbours.
  auto sizes = qwen3_sizes[5];
  sizes.layers = 2;
  auto tensors = tensors_of(sizes, standard);
  std::erase_if(tensors, [](const OwnedTensor& tensor) { return !tensor.is_matrix(); });
  tensors = joined(std::move(tensors));
  const auto balance = [&](Assignment assignment) {
    return make_plan(tensors, of_degrees(8), assignment).max_over_mean();
  };
  CHECK(balance(Assignment::padded) == Approx(1.058).epsilon(1e-3));
  CHECK(make_plan(tensors, of_degrees(8), Assignment::padded).padding() < 0.08);
  CHECK(balance(Assignment::contiguous) == Approx(1.058).epsilon(1e-3));
  // Nobody can own a part of one that is alone.
  tensors.erase(tensors.begin() + 1, tensors.end());
  CHECK(balance(Assignment::padded) == 8.0);
}

TEST_CASE("plans of nothing are empty") {
  for (const auto each : all_assignments) {
    const auto plan = make_plan({}, of_degrees(4), each);
    CHECK(plan.matrices.empty());
    CHECK(plan.size() == 0);
    CHECK(plan.padding() == 0.0);
    CHECK(plan.max_over_mean() == 1.0);
  }
}

TEST_CASE("assignments are found by their names") {
  for (const auto each : all_assignments) CHECK(assignment(name(each)) == each);
  CHECK_FALSE(assignment("auto").has_value());
  CHECK_FALSE(assignment("").has_value());
}

TEST_CASE("with more ranks than matrices some own none, and elements fill their shards") {
  const std::vector<OwnedTensor> tensors{matrix("a", 64, 64, standard),
                                         matrix("b", 64, 64, standard),
                                         vector("embedding", 6 * 64 * 64)};
  const auto plan = make_plan(tensors, of_degrees(8), Assignment::padded);
  CHECK(plan.matrices[0].ranges.front().rank != plan.matrices[1].ranges.front().rank);
  CHECK(plan.max_over_mean() == 4.0);
  CHECK(plan.padding() == 0.0);
}

TEST_CASE("matrices of one row are owned, and shared by tensor-parallel ranks") {
  const std::vector<OwnedTensor> tensors{matrix("row", 1, 4096, gram),
                                         matrix("column", 4096, 1, gram)};
  const auto whole = make_plan(tensors, of_degrees(2), Assignment::padded);
  CHECK(whole.max_over_mean() == 1.0);
  // Cuts lie between rows.
  const auto cut = make_plan(tensors, of_degrees(8), Assignment::shared);
  CHECK_FALSE(cut.matrices[0].is_shared());
  CHECK(cut.matrices[1].ranges.size() > 1);
  const auto shared = make_plan(tensors, of_degrees(1, 8), Assignment::shared);
  CHECK(shared.matrices[0].ranges.size() > 1);
  CHECK(shared.max_over_mean() < 1.1);
}
