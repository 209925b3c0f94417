// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/error.hpp"
#include "trireme/device/kernels.hpp"

#include "gpu/mirrored_kernels.hpp"
#include "support/fake_cublaslt/opened.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <memory>

/// The cuda backend on a simulated GPU, and what its products ask of the stand-in of cuBLASLt.
namespace trireme::device::test {

inline trireme::testing::CublasltControls& controls() {
  static const trireme::testing::OpenedCublaslt opened(TRIREME_FAKE_CUBLASLT);
  return opened.controls();
}

/// As the controls were when this began; and no misuse may have come to them.
class Watch {
 public:
  Watch() : before_(controls()) {}
  ~Watch() {
    controls().refused_epilogue = 0;
    controls().failing_epilogue = 0;
    controls().most_matrices = std::numeric_limits<std::uint64_t>::max();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  std::uint64_t slow() const { return controls().slow - before_.slow; }
  std::uint64_t with_epilogue() const { return controls().with_epilogue - before_.with_epilogue; }
  std::uint64_t batches() const { return controls().batches - before_.batches; }
  std::uint64_t split() const { return controls().split - before_.split; }
  std::uint64_t flops() const { return controls().flops - before_.flops; }
  std::uint64_t all() const {
    const auto sum = [](const trireme::testing::CublasltControls& each) {
      return each.plain + each.vectorised + each.split + each.slow;
    };
    return sum(controls()) - sum(before_);
  }
  void check_use() const {
    INFO(controls().last_refusal);
    CHECK(controls().misuses == before_.misuses);
    // Sums are in fp32, split or not.
    CHECK(controls().rounded == before_.rounded);
  }

 private:
  trireme::testing::CublasltControls before_;
};

/// Kernels of the GPU for tensors on the host, and their tuning.
class Gpu {
 public:
  Gpu() {
    auto inner = trireme::base::value_or_throw(make_cuda_kernels(0, {.by = AttentionBy::own}));
    tuning_ = inner->gemm_tuning();
    device_ = &inner->device();
    mirrored_ = std::make_unique<MirroredKernels>(std::move(inner));
  }
  Kernels& kernels() { return *mirrored_; }
  GemmTuning& tuning() { return *tuning_; }
  Device& device() { return *device_; }

 private:
  GemmTuning* tuning_ = nullptr;
  Device* device_ = nullptr;
  std::unique_ptr<MirroredKernels> mirrored_;
};

}  // namespace trireme::device::test
