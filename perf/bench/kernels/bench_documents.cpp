// SPDX-License-Identifier: Apache-2.0
// bench_documents: attention to sequences of packed documents on one core, beside attention that
// lets them see each other.
//
// One thread and its processor time, the best of several turns of each; all packings take turns, so
// that neighbours on a shared machine meet all alike. The pairs of queries and keys that a packing
// leaves are the least that its time could be.

#include "trireme/base/format.hpp"
#include "trireme/base/philox.hpp"

#include "kernel_work.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace trireme;
using device::DType;
using device::Tensor;

constexpr int turns = 5;
constexpr std::int64_t heads = 8;
constexpr std::int64_t head_dim = 64;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct PackedDocuments {
  std::string name;
  std::vector<std::int64_t> lengths;  // empty: no mask
  double forward_seconds = 1e9;
  double backward_seconds = 1e9;
};

PackedDocuments equal_documents(std::int64_t seq, std::int64_t length) {
  PackedDocuments packing{base::format("documents of {}", length), {}};
  for (std::int64_t left = seq; left > 0; left -= length) {
    packing.lengths.push_back(std::min(left, length));
  }
  return packing;
}

/// Lengths of texts on the web are about log-normal: the median is 400 tokens here.
PackedDocuments uneven_documents(std::int64_t seq) {
  PackedDocuments packing{"documents of all lengths", {}};
  std::uint64_t drawn = 0;
  for (std::int64_t left = seq; left > 0;) {
    double normal = 0;
    for (const auto bits : base::philox(1, 2, drawn++)) normal += std::ldexp(bits, -32);
    const double length = 400 * std::exp(std::sqrt(3.0) * (normal - 2));
    packing.lengths.push_back(std::min(left, std::max<std::int64_t>(1, std::llround(length))));
    left -= packing.lengths.back();
  }
  return packing;
}

double pairs(const PackedDocuments& packing, std::int64_t seq) {
  const auto of = [](std::int64_t length) {
    return static_cast<double>(length) * static_cast<double>(length + 1) / 2;
  };
  if (packing.lengths.empty()) return of(seq);
  double sum = 0;
  for (const auto length : packing.lengths) sum += of(length);
  return sum;
}

device::AttentionBackward tensors_of(device::Kernels& kernels, device::Arena& arena, DType dtype,
                                     std::int64_t seq) {
  std::uint64_t seed = 0;
  const auto take = [&] {
    const auto tensor = arena.allocate(dtype, {1, seq, heads, head_dim});
    bench::set_random(kernels, tensor, ++seed);
    return tensor;
  };
  device::Attention forward{.q = take(), .k = take(), .v = take(), .out = take()};
  forward.lse = arena.allocate(DType::f32, {1, heads, seq});
  forward.scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  return {forward, take(), take(), take(), take()};
}

void put_first_keys(const PackedDocuments& packing, const Tensor& first_keys) {
  std::int64_t first = 0;
  for (const auto length : packing.lengths) {
    std::fill_n(first_keys.i32() + first, length, static_cast<std::int32_t>(first));
    first += length;
  }
}

template <typename Operation>
double seconds_of(device::Kernels& kernels, const Operation& operation) {
  const double begin = processor_seconds();
  kernels.issue(operation);
  return processor_seconds() - begin;
}

void print_times(const std::vector<PackedDocuments>& packings, std::int64_t seq) {
  const auto& plain = packings.front();
  std::cout << "packing                     pairs   forward            backward\n";
  for (const auto& packing : packings) {
    std::cout << base::format(
        "{:<25} {:>5.1f} % {:>8.2f} ms {:>5.1f} % {:>8.2f} ms {:>5.1f} %\n", packing.name,
        100 * pairs(packing, seq) / pairs(plain, seq), 1e3 * packing.forward_seconds,
        100 * packing.forward_seconds / plain.forward_seconds, 1e3 * packing.backward_seconds,
        100 * packing.backward_seconds / plain.backward_seconds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bench_documents SEQ bf16|fp32\n";
    return 2;
  }
  const std::int64_t seq = std::atol(argv[1]);
  const auto dtype = std::string(argv[2]) == "bf16" ? DType::bf16 : DType::f32;
  const auto kernels = device::make_cpu_kernels(1);
  auto arena = device::Arena::host(device::Purpose::workspace, std::size_t{2} << 30);
  auto call = tensors_of(*kernels, arena, dtype, seq);
  const auto first_keys = arena.allocate(DType::i32, {1, seq});
  std::vector<PackedDocuments> packings{{"no mask", {}}, equal_documents(seq, seq)};
  for (const std::int64_t length : {2048, 512, 128, 32}) {
    if (length < seq) packings.push_back(equal_documents(seq, length));
  }
  packings.push_back(uneven_documents(seq));
  for (int turn = 0; turn <= turns; ++turn) {
    for (auto& packing : packings) {
      call.forward.first_keys = packing.lengths.empty() ? Tensor{} : first_keys;
      put_first_keys(packing, first_keys);
      const double forward = seconds_of(*kernels, call.forward);
      const double backward = seconds_of(*kernels, call);
      // The first turn compiles products and meets untouched memory.
      if (turn == 0) continue;
      packing.forward_seconds = std::min(packing.forward_seconds, forward);
      packing.backward_seconds = std::min(packing.backward_seconds, backward);
    }
  }
  print_times(packings, seq);
  return 0;
}
