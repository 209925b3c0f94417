// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gemm/scratch.hpp"

#include "trireme/base/philox.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::device::cuda {
namespace {

/// Random numbers of a type, repeated where more are wanted.
std::vector<std::byte> random_block(DType dtype) {
  constexpr std::size_t block_bytes = std::size_t{1} << 20;
  const auto size = size_of(dtype);
  std::vector<std::byte> block(block_bytes);
  for (std::size_t index = 0; index * size < block.size(); ++index) {
    const float value = base::philox_normal(1, 0, index);
    if (dtype == DType::e4m3) {
      block[index] = std::byte{to_e4m3(value).bits};
      continue;
    }
    // bf16 is a float's upper half.
    std::memcpy(&block[index * size],
                reinterpret_cast<const std::byte*>(&value) + sizeof(float) - size, size);
  }
  return block;
}

std::size_t elements_of(std::int64_t stride, std::int64_t columns) {
  return static_cast<std::size_t>(stride * columns);
}

}  // namespace

GemmScratch::GemmScratch(const GemmDescriptor& descriptor, StreamView stream)
    : stream_(stream), begin_(Event::make_timed()), end_(Event::make_timed()) {
  const auto columns_a = descriptor.transpose_a ? descriptor.m : descriptor.k;
  const auto columns_b = descriptor.transpose_b ? descriptor.k : descriptor.n;
  operands_.a =
      take(elements_of(descriptor.stride_a, columns_a), descriptor.in, descriptor.alignment_a);
  operands_.b =
      take(elements_of(descriptor.stride_b, columns_b), descriptor.in, descriptor.alignment_b);
  operands_.d =
      take(elements_of(descriptor.stride_d, descriptor.n), descriptor.out, descriptor.alignment_d);
  if (descriptor.stride_c > 0) {
    operands_.c = take(elements_of(descriptor.stride_c, descriptor.n), descriptor.out,
                       descriptor.alignment_c);
  }
  if (descriptor.stride_aux > 0) {
    operands_.aux = take(elements_of(descriptor.stride_aux, descriptor.n), descriptor.out,
                         descriptor.alignment_aux);
  }
  constexpr std::uint32_t any = 256;
  if (descriptor.in == DType::e4m3) {
    operands_.scale_a = take(1, DType::f32, any);
    operands_.scale_b = take(1, DType::f32, any);
  }
  if (has_bias(descriptor.epilogue)) {
    const auto length = std::max(descriptor.m, descriptor.n);
    operands_.bias = take(static_cast<std::size_t>(length), descriptor.out, bias_alignment);
  }
  stream_.synchronize();
}

void* GemmScratch::take(std::size_t elements, DType dtype, std::uint32_t alignment) {
  constexpr std::size_t allocated = 256;
  const auto offset = alignment >= allocated ? 0 : std::size_t{alignment};
  const auto bytes = std::max<std::size_t>(elements, 1) * size_of(dtype);
  memory_.push_back(allocate_device(bytes + offset));
  auto* const place = static_cast<std::byte*>(memory_.back().get()) + offset;
  fill(place, bytes, dtype);
  return place;
}

void GemmScratch::fill(void* memory, std::size_t bytes, DType dtype) {
  // Made once: a start times tens of GEMMs, and a block takes tens of milliseconds.
  static const auto f32_block = random_block(DType::f32);
  static const auto bf16_block = random_block(DType::bf16);
  static const auto e4m3_block = random_block(DType::e4m3);
  const auto& block = dtype == DType::f32    ? f32_block
                      : dtype == DType::bf16 ? bf16_block
                                             : e4m3_block;
  for (std::size_t begin = 0; begin < bytes; begin += block.size()) {
    check(cudaMemcpyAsync(static_cast<std::byte*>(memory) + begin, block.data(),
                          std::min(block.size(), bytes - begin), cudaMemcpyHostToDevice,
                          stream_.raw()),
          "cudaMemcpyAsync");
  }
  stream_.synchronize();
}

double GemmScratch::seconds_of(const std::function<void()>& call) {
  constexpr int calls = 3;
  stream_.record(begin_.view());
  for (int index = 0; index < calls; ++index) call();
  stream_.record(end_.view());
  end_.view().wait();
  return seconds_between(begin_.view(), end_.view()) / calls;
}

}  // namespace trireme::device::cuda
