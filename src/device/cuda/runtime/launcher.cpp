// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/runtime/launcher.hpp"

#include "device/cuda/runtime/cuda_device.hpp"

#include <algorithm>
#include <vector>

namespace trireme::device::cuda {
namespace {

constexpr std::size_t granule = 256;

constexpr std::size_t rounded(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + granule - 1) / granule * granule;
}

/// Pieces of blocks that grow to what the largest operation takes and then stay. Lies outside of
/// the arenas.
class Workspace {
 public:
  void reset() { used_bytes_ = 0; }

  std::size_t total_bytes() const {
    std::size_t total = 0;
    for (const auto& block : blocks_) total += block.bytes;
    return total;
  }

  void* take(std::size_t bytes) {
    bytes = rounded(bytes);
    if (blocks_.empty() || used_bytes_ + bytes > blocks_.back().bytes) {
      // Former blocks may still be in use by kernels under way: they are kept. The new one is at
      // least twice as large, so that few are ever made.
      const auto size = std::max(bytes, blocks_.empty() ? 0 : 2 * blocks_.back().bytes);
      blocks_.push_back({allocate_device(size), size});
      used_bytes_ = 0;
    }
    auto* place = static_cast<std::byte*>(blocks_.back().memory.get()) + used_bytes_;
    used_bytes_ += bytes;
    return place;
  }

 private:
  struct Block {
    DeviceMemory memory;
    std::size_t bytes;
  };
  std::vector<Block> blocks_;
  std::size_t used_bytes_ = 0;
};

/// Numbers that stay on the GPU until the host reads them.
class Answers {
 public:
  double* next() {
    if (used_ == blocks_.size() * block) blocks_.push_back(allocate_device(block * sizeof(double)));
    auto* const first = static_cast<double*>(blocks_[used_ / block].get());
    return first + used_++ % block;
  }
  bool empty() const { return used_ == 0; }
  /// Numbers left so far; the stream is done.
  std::vector<double> take() {
    std::vector<double> answers(used_);
    for (std::size_t begin = 0; begin < used_; begin += block) {
      const auto count = std::min(block, used_ - begin);
      check(cudaMemcpy(answers.data() + begin, blocks_[begin / block].get(), count * sizeof(double),
                       cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    }
    used_ = 0;
    return answers;
  }

 private:
  static constexpr std::size_t block = 1024;
  std::vector<DeviceMemory> blocks_;
  std::size_t used_ = 0;
};

}  // namespace

struct Launcher::Parts {
  explicit Parts(CudaDevice& its_device) : device(its_device) {}

  CudaDevice& device;
  Workspace workspace;
  Answers answers;
  PinnedMemory answer = allocate_pinned(sizeof(double));
};

Launcher::Launcher(CudaDevice& device) : parts_(std::make_unique<Parts>(device)) {
  int gpu = 0;
  check(cudaGetDevice(&gpu), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, gpu),
        "cudaDeviceGetAttribute");
}

Launcher::~Launcher() = default;

void Launcher::reset() {
  parts_->workspace.reset();
}

void* Launcher::take(std::size_t bytes) {
  return parts_->workspace.take(bytes);
}

std::size_t Launcher::workspace_bytes() const {
  return parts_->workspace.total_bytes();
}

double* Launcher::take_answer() {
  return parts_->answers.next();
}

std::vector<double> Launcher::read_answers() {
  if (parts_->answers.empty()) return {};
  // Unlike the copy, this wait is watched: the copy then begins with nothing left to wait for.
  parts_->device.synchronize();
  return parts_->answers.take();
}

void Launcher::start(const char* name, const void* kernel, const Grid& grid, void** arguments) {
  const dim3 blocks(static_cast<unsigned>(grid.blocks), 1, 1);
  const dim3 threads(static_cast<unsigned>(grid.threads), 1, 1);
  check(cudaLaunchKernel(kernel, blocks, threads, arguments, 0, parts_->device.stream().raw()),
        name);
}

double Launcher::read(const double* result) {
  auto* answer = static_cast<double*>(parts_->answer.get());
  check(cudaMemcpyAsync(answer, result, sizeof(double), cudaMemcpyDeviceToHost,
                        parts_->device.stream().raw()),
        "cudaMemcpyAsync");
  parts_->device.synchronize();
  return *answer;
}

}  // namespace trireme::device::cuda
