// SPDX-License-Identifier: Apache-2.0
// The runtime's functions for GPUs and errors.
#include "support/simulated_gpu/cuda/runtime.hpp"

#include <cstdio>
#include <cstring>

namespace {

using namespace trireme::testing::simulated_gpu;

constexpr int version = CUDART_VERSION;

void expect_gpu(const Runtime& runtime, int gpu) {
  expect(gpu >= 0 && gpu < runtime.gpus(), cudaErrorInvalidDevice);
}

/// Values of the attributes that anybody asks for.
int value_of(cudaDeviceAttr attribute) {
  if (attribute == cudaDevAttrMultiProcessorCount) return Runtime::multiprocessors;
  if (attribute == cudaDevAttrComputeCapabilityMajor) return Runtime::major;
  expect(attribute == cudaDevAttrComputeCapabilityMinor, cudaErrorInvalidValue);
  return Runtime::minor;
}

struct Text {
  cudaError_t code;
  const char* name;
  const char* text;
};
constexpr Text texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
};

const Text& text_of(cudaError_t code) {
  static constexpr Text unknown{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  for (const auto& text : texts) {
    if (text.code == code) return text;
  }
  return unknown;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call([&](Runtime& runtime) {
    expect(count != nullptr, cudaErrorInvalidValue);
    *count = runtime.gpus();
    expect(*count > 0, cudaErrorNoDevice);
  });
}

cudaError_t cudaSetDevice(int gpu) {
  return call([&](Runtime& runtime) {
    expect_gpu(runtime, gpu);
    this_thread().gpu = gpu;
  });
}

cudaError_t cudaGetDevice(int* gpu) {
  return call([&](Runtime& runtime) {
    expect(gpu != nullptr, cudaErrorInvalidValue);
    expect_gpu(runtime, this_thread().gpu);
    *gpu = this_thread().gpu;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int gpu) {
  return call([&](Runtime& runtime) {
    expect_gpu(runtime, gpu);
    expect(text != nullptr && length >= 13, cudaErrorInvalidValue);
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", 0x1b + gpu);
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int gpu) {
  return call([&](Runtime& runtime) {
    expect_gpu(runtime, gpu);
    expect(properties != nullptr, cudaErrorInvalidValue);
    std::memset(properties, 0, sizeof(*properties));
    std::strcpy(properties->name, "Simulated GPU");
    properties->major = Runtime::major;
    properties->minor = Runtime::minor;
    properties->totalGlobalMem = Runtime::total_bytes;
    properties->multiProcessorCount = Runtime::multiprocessors;
    properties->l2CacheSize = 60 << 20;
    properties->maxThreadsPerBlock = 1024;
    properties->warpSize = 32;
    properties->pciBusID = 0x1b + gpu;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int gpu) {
  return call([&](Runtime& runtime) {
    expect_gpu(runtime, gpu);
    expect(value != nullptr, cudaErrorInvalidValue);
    *value = value_of(attribute);
  });
}

cudaError_t cudaDriverGetVersion(int* number) {
  *number = version;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* number) {
  *number = version;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return std::exchange(this_thread().last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  return this_thread().last_error;
}

const char* cudaGetErrorName(cudaError_t code) {
  return text_of(code).name;
}

const char* cudaGetErrorString(cudaError_t code) {
  return text_of(code).text;
}

}  // extern "C"
