#include "device/cuda/launcher.hpp"

#include "device/cuda/stream.hpp"

#include <algorithm>
#include <utility>
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

}  // namespace

struct Launcher::Parts {
  explicit Parts(StreamView its_stream) : stream(its_stream) {}

  StreamView stream;
  Workspace workspace;
  PinnedMemory answer = allocate_pinned(sizeof(double));
};

Launcher::Launcher(StreamView stream) : parts_(std::make_unique<Parts>(stream)) {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
}

Launcher::~Launcher() = default;

StreamView Launcher::stream() const {
  return parts_->stream;
}

void Launcher::reset() {
  parts_->workspace.reset();
}

void* Launcher::take(std::size_t bytes) {
  return parts_->workspace.take(bytes);
}

std::size_t Launcher::workspace_bytes() const {
  return parts_->workspace.total_bytes();
}

void Launcher::start(const char* name, const void* kernel, const Grid& grid, void** arguments) {
  const dim3 blocks(static_cast<unsigned>(grid.blocks), 1, 1);
  const dim3 threads(static_cast<unsigned>(grid.threads), 1, 1);
  check(cudaLaunchKernel(kernel, blocks, threads, arguments, 0, parts_->stream.raw()), name);
}

double Launcher::read(const double* result) {
  auto* answer = static_cast<double*>(parts_->answer.get());
  check(
      cudaMemcpyAsync(answer, result, sizeof(double), cudaMemcpyDeviceToHost, parts_->stream.raw()),
      "cudaMemcpyAsync");
  parts_->stream.synchronize();
  return *answer;
}

}  // namespace trireme::device::cuda
