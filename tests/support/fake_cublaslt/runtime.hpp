// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace trireme::testing::cublaslt {

/// Functions of the CUDA runtime that the stand-in calls: as the program's own functions, so that
/// streams are those of the program. Null: the program has none.
struct Runtime {
  decltype(&cudaLaunchHostFunc) launch_host_function = nullptr;
  decltype(&cudaGetDevice) get_device = nullptr;
  decltype(&cudaDeviceGetAttribute) device_attribute = nullptr;
  decltype(&cudaDeviceSynchronize) synchronize = nullptr;
  decltype(&cudaStreamIsCapturing) is_capturing = nullptr;
};

const Runtime& runtime();

/// Device of the thread; 0 where nobody says.
int current_device();
/// 90 for 9.0, which is also where nobody says.
int capability_of(int device);

}  // namespace trireme::testing::cublaslt
