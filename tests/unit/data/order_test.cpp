// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/blend.hpp"
#include "trireme/data/permutation.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <numeric>

using namespace trireme::data;

namespace {

std::vector<std::uint64_t> elements(const Permutation& permutation, std::uint64_t size) {
  std::vector<std::uint64_t> found;
  for (std::uint64_t i = 0; i < size; ++i) found.push_back(permutation(i));
  return found;
}

double chi_square(const std::vector<int>& counts, double expected) {
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

}  // namespace

TEST_CASE("a permutation is a bijection at every size") {
  for (std::uint64_t size = 1; size < 300; ++size) {
    auto found = elements(Permutation(size, 7, size), size);
    std::sort(found.begin(), found.end());
    std::vector<std::uint64_t> all(size);
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    CHECK(found == all);
  }
  const std::uint64_t large = 1'000'003;
  std::vector<bool> seen(large);
  const Permutation permutation(large, 1, 2);
  for (std::uint64_t i = 0; i < large; ++i) seen[permutation(i)] = true;
  CHECK(std::all_of(seen.begin(), seen.end(), [](bool one) { return one; }));
}

TEST_CASE("huge permutations stay within their size") {
  const std::uint64_t size = (std::uint64_t{1} << 62) - 57;
  const Permutation permutation(size, 3, 4);
  for (std::uint64_t i = 0; i < 100; ++i) CHECK(permutation(size - 1 - i) < size);
}

TEST_CASE("every order of five elements is equally likely") {
  // 120 orders, 12000 epochs: chi-square with 119 degrees of freedom exceeds 180 once in 4000.
  std::map<std::vector<std::uint64_t>, int> orders;
  for (std::uint64_t epoch = 0; epoch < 12'000; ++epoch) {
    ++orders[elements(Permutation(5, 42, epoch), 5)];
  }
  std::vector<int> counts;
  for (const auto& [order, count] : orders) counts.push_back(count);
  CHECK(counts.size() == 120);
  CHECK(chi_square(counts, 100.0) < 180.0);
}

TEST_CASE("neighbours land anywhere, whatever the seed and epoch") {
  // The distance between the images of neighbours, in ten classes of equal likelihood.
  const std::uint64_t size = 20'000;
  std::vector<int> counts(10);
  const Permutation permutation(size, 5, 0);
  for (std::uint64_t i = 0; i + 1 < size; ++i) {
    const auto distance = (permutation(i + 1) + size - permutation(i)) % size;
    ++counts[static_cast<std::size_t>(distance * 10 / size)];
  }
  // Nine degrees of freedom: above 34 once in 10000.
  CHECK(chi_square(counts, static_cast<double>(size - 1) / 10.0) < 34.0);
  CHECK(elements(Permutation(100, 5, 0), 100) != elements(Permutation(100, 5, 1), 100));
  CHECK(elements(Permutation(100, 5, 0), 100) != elements(Permutation(100, 6, 0), 100));
}

TEST_CASE("a blend gives each source its exact share and never strays far from it") {
  const std::vector<std::uint64_t> weights{3, 1, 5, 7, 4};
  const Blend blend(weights);
  std::vector<std::uint64_t> drawn(weights.size());
  for (std::uint64_t n = 0; n < 200; ++n) {
    const auto draw = blend(n);
    CHECK(draw.index == drawn[draw.source]);
    ++drawn[draw.source];
    for (std::size_t s = 0; s < weights.size(); ++s) {
      const auto ideal = static_cast<double>((n + 1) * weights[s]) / 20.0;
      CHECK(std::abs(static_cast<double>(drawn[s]) - ideal) < 3.0);
    }
    if ((n + 1) % 20 == 0) {
      for (std::size_t s = 0; s < weights.size(); ++s) {
        CHECK(drawn[s] == (n + 1) / 20 * weights[s]);
      }
    }
  }
}

TEST_CASE("a blend of two interleaves as a Bresenham line does") {
  const Blend blend(std::vector<std::uint64_t>{1, 2});
  std::string order;
  for (std::uint64_t n = 0; n < 9; ++n) order += blend(n).source == 0 ? 'a' : 'b';
  CHECK(order == "bbabbabba");
  CHECK(Blend(std::vector<std::uint64_t>{9})(12345) == Blend::Draw{0, 12345});
}

TEST_CASE("draws far into a blend are found without walking there") {
  const std::vector<std::uint64_t> weights{300'000'000, 699'999'999, 1};
  const Blend blend(weights);
  const std::uint64_t far = 1'000'000'000'000ULL;
  // A thousand whole periods: the counts so far are known exactly.
  std::array<std::uint64_t, 3> next{300'000'000'000ULL, 699'999'999'000ULL, 1000};
  for (std::uint64_t n = far; n < far + 1000; ++n) {
    const auto draw = blend(n);
    CHECK(draw.index == next[draw.source]++);
  }
}

TEST_CASE("counts of a blend are its draws, counted") {
  const std::vector<std::uint64_t> weights{5, 1, 30, 7, 7};
  const Blend blend(weights);
  std::vector<std::uint64_t> drawn(weights.size());
  for (std::uint64_t draws = 0; draws < 300; ++draws) {
    CHECK(blend.counts(draws) == drawn);
    ++drawn[blend(draws).source];
  }
  constexpr std::uint64_t many = std::uint64_t{50} << 40;
  CHECK(blend.counts(many) == std::vector<std::uint64_t>{many / 50 * 5, many / 50, many / 50 * 30,
                                                         many / 50 * 7, many / 50 * 7});
}
