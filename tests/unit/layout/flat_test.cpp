// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/flat.hpp"

#include <catch2/catch.hpp>

#include <numeric>
#include <random>

using namespace trireme;
using namespace trireme::layout;

TEST_CASE("a bucket closes at the first tensor boundary at or after its size") {
  // Worked by hand: alignment 4, two shards, buckets of 10 elements.
  const std::vector<std::int64_t> sizes = {3, 5, 2, 30, 1};
  const FlatLayout layout = flat_layout(sizes, 2, 10, 4);
  CHECK(layout.tensors == std::vector<FlatRange>{{0, 3}, {4, 9}, {12, 14}, {16, 46}, {48, 49}});
  CHECK(layout.buckets == std::vector<FlatRange>{{0, 16}, {16, 48}, {48, 56}});
  CHECK(layout.size == 56);
  CHECK(layout.shard_of_bucket(1, 0) == FlatRange{16, 32});
  CHECK(layout.shard_of_bucket(1, 1) == FlatRange{32, 48});
  CHECK(layout.buckets_of_tensor(0) == FlatRange{0, 1});
  CHECK(layout.buckets_of_tensor(3) == FlatRange{1, 2});
  CHECK(layout.buckets_of_tensor(4) == FlatRange{2, 3});
}

TEST_CASE("shards of a bucket that is cut have the lengths of its cuts, others are equal") {
  FlatLayout layout = flat_layout(std::vector<std::int64_t>{16, 16, 32}, 2, 16, 4);
  layout.cuts = {{}, {0, 4, 16}};
  CHECK(layout.shard_of_bucket(0, 1) == FlatRange{8, 16});
  CHECK(layout.shard_of_bucket(1, 0) == FlatRange{16, 20});
  CHECK(layout.shard_of_bucket(1, 1) == FlatRange{20, 32});
  CHECK(layout.shard_of_bucket(2, 0) == FlatRange{32, 48});
  CHECK(layout.cuts_of_bucket(2).empty());
}

TEST_CASE("a flat layout of nothing is empty") {
  const FlatLayout layout = flat_layout({}, 4, 100, 8);
  CHECK(layout.buckets.empty());
  CHECK(layout.size == 0);
  const std::vector<std::int64_t> empty = {0, 0};
  CHECK(flat_layout(empty, 4, 100, 8).size == 0);
  CHECK(flat_layout(empty, 4, 100, 8).buckets_of_tensor(1).size() == 0);
}

TEST_CASE("tensors are aligned and disjoint, buckets have no gaps, shards make up the buckets") {
  std::mt19937_64 engine(7);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(engine);
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(draw(0, 12)));
    for (auto& size : sizes) size = draw(0, 60);
    const int shards = draw(1, 6);
    const std::int64_t alignment = draw(1, 9);
    const std::int64_t bucket_elements = draw(1, 100);
    const FlatLayout layout = flat_layout(sizes, shards, bucket_elements, alignment);

    std::int64_t end = 0;
    for (std::size_t tensor = 0; tensor < sizes.size(); ++tensor) {
      const FlatRange range = layout.tensors[tensor];
      REQUIRE(range.begin >= end);
      REQUIRE(range.begin % alignment == 0);
      REQUIRE(range.size() == sizes[tensor]);
      end = range.end;
      const FlatRange buckets = layout.buckets_of_tensor(tensor);
      REQUIRE(buckets.size() == (range.size() == 0 ? 0 : 1));  // a tensor never straddles
    }
    REQUIRE(end <= layout.size);

    std::int64_t bucket_end = 0;
    for (std::size_t bucket = 0; bucket < layout.buckets.size(); ++bucket) {
      const FlatRange range = layout.buckets[bucket];
      REQUIRE(range.begin == bucket_end);
      REQUIRE(range.size() > 0);
      REQUIRE(range.size() % (shards * alignment) == 0);
      std::int64_t shard_end = range.begin;
      for (int shard = 0; shard < shards; ++shard) {
        REQUIRE(layout.shard_of_bucket(bucket, shard).begin == shard_end);
        shard_end = layout.shard_of_bucket(bucket, shard).end;
      }
      REQUIRE(shard_end == range.end);
      bucket_end = range.end;
    }
    REQUIRE(bucket_end == layout.size);
  }
}

TEST_CASE("bucket boundaries do not depend on what is computed, only on sizes and shards") {
  // The same sizes give the same layout: all ZeRO levels share one arithmetic.
  const std::vector<std::int64_t> sizes = {100, 7, 300, 20};
  const FlatLayout a = flat_layout(sizes, 3, 128, 16);
  const FlatLayout b = flat_layout(sizes, 3, 128, 16);
  CHECK(a.buckets == b.buckets);
  CHECK(a.tensors == b.tensors);
}

TEST_CASE("the pieces of all shards hold every element of every tensor once") {
  const std::vector<Box> boxes = {
      {{4, 0}, {3, 5}}, {{0}, {7}}, {{0, 0, 2}, {2, 3, 4}}, {{0}, {0}}, {{9, 1}, {1, 1}}};
  std::vector<std::int64_t> sizes;
  for (const Box& box : boxes) sizes.push_back(element_count(box));
  for (const int shards : {1, 2, 3, 5}) {
    const FlatLayout layout = flat_layout(sizes, shards, 20, 4);
    std::vector<std::vector<int>> seen;
    for (const auto size : sizes) seen.emplace_back(static_cast<std::size_t>(size), 0);
    for (int shard = 0; shard < shards; ++shard) {
      std::int64_t flat_end = 0;
      for (const FlatBox& piece : pieces_of_shard(layout, boxes, shard)) {
        REQUIRE(piece.flat_begin >= flat_end);
        flat_end = piece.flat_begin + element_count(piece.box);
        const std::int64_t tensor_begin = layout.tensors[piece.tensor].begin;
        // One run, that lies in the tensor where the flat buffer says.
        const auto runs = copy_runs(piece.box, boxes[piece.tensor]);
        REQUIRE(runs.size() == 1);
        REQUIRE(runs[0].destination == piece.flat_begin - tensor_begin);
        for (std::int64_t at = 0; at < runs[0].count; ++at) {
          ++seen[piece.tensor][static_cast<std::size_t>(runs[0].destination + at)];
        }
      }
    }
    for (const auto& counts : seen) {
      for (const int count : counts) REQUIRE(count == 1);
    }
  }
}
