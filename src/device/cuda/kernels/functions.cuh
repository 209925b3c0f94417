// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simt.hpp"

/// Functions of single numbers that kernels bound by memory call for every element.
namespace trireme::device::cuda {

constexpr float log2_e = 1.4426950409F;

/// e to the power of x, wrong by some 1e-7 of itself and of x.
__device__ inline float exp_near(float x) {
  return simt::exp2_near(log2_e * x);
}

__device__ inline float sigmoid(float x) {
  return simt::reciprocal_near(1.0F + exp_near(-x));
}

}  // namespace trireme::device::cuda
