// SPDX-License-Identifier: Apache-2.0
#include "gpu/mirrored_kernels.hpp"

#include "trireme/base/error.hpp"

#include <algorithm>
#include <vector>

namespace trireme::device::test {
namespace {

/// Host memory from the first to the last element of one tensor or of several that overlap, and
/// its copy on the GPU.
struct Mirror {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  bool written = false;
  cuda::DeviceMemory copy;
  std::byte* place = nullptr;
};

std::byte* end_of(const Tensor& tensor) {
  std::int64_t last = 0;
  for (int index = 0; index < tensor.rank(); ++index) {
    last += (tensor.dim(index) - 1) * tensor.stride(index);
  }
  return static_cast<std::byte*>(tensor.raw()) +
         (last + 1) * static_cast<std::int64_t>(size_of(tensor.dtype()));
}

std::vector<Mirror> mirrors_of(std::span<const Operand> operands) {
  std::vector<Mirror> parts;
  for (const auto& operand : operands) {
    if (!operand.tensor || operand.tensor.element_count() == 0) continue;
    parts.push_back({static_cast<std::byte*>(operand.tensor.raw()),
                     end_of(operand.tensor),
                     operand.role != Role::input,
                     {},
                     nullptr});
  }
  std::sort(parts.begin(), parts.end(),
            [](const Mirror& a, const Mirror& b) { return a.begin < b.begin; });
  std::vector<Mirror> merged;
  for (auto& part : parts) {
    if (!merged.empty() && part.begin < merged.back().end) {
      merged.back().end = std::max(merged.back().end, part.end);
      merged.back().written = merged.back().written || part.written;
    } else {
      merged.push_back(std::move(part));
    }
  }
  return merged;
}

}  // namespace

void MirroredKernels::transfer(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  cuda::check(cudaMemcpyAsync(to, from, bytes, kind, copies_.view().raw()), "cudaMemcpyAsync");
}

void MirroredKernels::run(const char*, std::span<const Operand> operands, const Body& body) {
  // As far from a multiple as on the host: whether packs can be moved depends on it.
  constexpr std::size_t multiple = 256;
  auto mirrors = mirrors_of(operands);
  for (auto& mirror : mirrors) {
    const auto bytes = static_cast<std::size_t>(mirror.end - mirror.begin);
    const auto rest = reinterpret_cast<std::uintptr_t>(mirror.begin) % multiple;
    mirror.copy = cuda::allocate_device(bytes + multiple);
    mirror.place = static_cast<std::byte*>(mirror.copy.get()) + rest;
    transfer(mirror.place, mirror.begin, bytes, cudaMemcpyHostToDevice);
  }
  // A copy from pageable memory returns before it has arrived, and kernels run on another stream.
  copies_.view().synchronize();
  body(*inner_, [&](const Tensor& tensor) {
    const auto* at = static_cast<const std::byte*>(tensor.raw());
    for (const auto& mirror : mirrors) {
      if (at >= mirror.begin && at < mirror.end) {
        return tensor.moved_to(mirror.place + (at - mirror.begin));
      }
    }
    return tensor;  // empty
  });
  inner_->synchronize();
  for (const auto& mirror : mirrors) {
    if (!mirror.written) continue;
    transfer(mirror.begin, mirror.place, static_cast<std::size_t>(mirror.end - mirror.begin),
             cudaMemcpyDeviceToHost);
  }
  copies_.view().synchronize();
}

std::shared_ptr<Kernels> mirrored_on_gpu(const AttentionChoice& attention) {
  return std::make_shared<MirroredKernels>(base::value_or_throw(make_cuda_kernels(0, attention)));
}

}  // namespace trireme::device::test
