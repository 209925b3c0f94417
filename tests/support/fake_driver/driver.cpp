// SPDX-License-Identifier: Apache-2.0
// Stands in for the CUDA driver (libcuda.so.1) where there is no GPU, for as much as cuDNN asks of
// it while it makes plans for a GPU that is only described: modules "load", so that workspaces and
// kernels of a plan can be looked at. There is no device, and nothing runs.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int success = 0;
constexpr int no_device = 100;

std::vector<std::string>& images() {
  static std::vector<std::string> all;
  return all;
}

template <typename T>
T number_at(const void* place, std::size_t offset) {
  T value{};
  std::memcpy(&value, static_cast<const std::byte*>(place) + offset, sizeof(value));
  return value;
}

/// An ELF file ends where its tables of sections or segments do.
std::size_t elf_bytes(const void* image) {
  const auto sections =
      number_at<std::uint64_t>(image, 0x28) +
      std::size_t{number_at<std::uint16_t>(image, 0x3A)} * number_at<std::uint16_t>(image, 0x3C);
  const auto segments =
      number_at<std::uint64_t>(image, 0x20) +
      std::size_t{number_at<std::uint16_t>(image, 0x36)} * number_at<std::uint16_t>(image, 0x38);
  return sections > segments ? sections : segments;
}

void keep(const void* image) {
  constexpr const char* elf = "\x7F\x45LF";
  if (std::memcmp(image, elf, 4) != 0) return;
  images().emplace_back(static_cast<const char*>(image), elf_bytes(image));
}

/// Handles are made of nothing, but not null.
void* some_handle() {
  static int something = 0;
  return &something;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
extern "C" {

/// The programs that have been loaded, oldest first; null behind the last.
const char* fake_driver_image(std::size_t index, std::size_t* bytes) {
  if (index >= images().size()) return nullptr;
  *bytes = images()[index].size();
  return images()[index].data();
}

int cuInit(unsigned) {
  return no_device;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return success;
}
/// One, or nothing would be loaded.
int cuDeviceGetCount(int* count) {
  *count = 1;
  return success;
}
int cuGetErrorString(int, const char** text) {
  *text = "there is no driver";
  return success;
}
int cuGetErrorName(int, const char** text) {
  *text = "CUDA_ERROR_FAKE";
  return success;
}
int cuCtxGetCurrent(void** context) {
  *context = nullptr;
  return success;
}
int cuLibraryLoadData(void** library, const void* image) {
  keep(image);
  *library = some_handle();
  return success;
}
int cuModuleLoadData(void** module, const void* image) {
  return cuLibraryLoadData(module, image);
}
int cuModuleLoadDataEx(void** module, const void* image) {
  return cuLibraryLoadData(module, image);
}
int cuModuleLoadFatBinary(void** module, const void*) {
  *module = some_handle();
  return success;
}
int cuLibraryGetKernel(void** kernel, void*, const char*) {
  *kernel = some_handle();
  return success;
}
int cuKernelGetFunction(void** function, void*) {
  *function = some_handle();
  return success;
}
int cuModuleGetFunction(void** function, void*, const char*) {
  *function = some_handle();
  return success;
}
int cuKernelGetAttribute(int* value, int) {
  *value = 0;
  return success;
}
int cuFuncGetAttribute(int* value, int) {
  *value = 0;
  return success;
}
int cuDeviceGetAttribute(int* value, int, int) {
  *value = 0;
  return success;
}
int cuDeviceGet(int* device, int) {
  *device = 0;
  return success;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks) {
  *blocks = 1;
  return success;
}

// Functions without an answer.
int cuCtxGetDevice() {
  return no_device;
}
int cuCtxGetLimit() {
  return no_device;
}
int cuCtxPopCurrent() {
  return success;
}
int cuCtxPushCurrent() {
  return success;
}
int cuDevicePrimaryCtxRelease() {
  return success;
}
int cuDevicePrimaryCtxReset() {
  return success;
}
int cuDevicePrimaryCtxRetain() {
  return no_device;
}
int cuFuncSetAttribute() {
  return success;
}
int cuKernelSetAttribute() {
  return success;
}
int cuLaunchCooperativeKernel() {
  return no_device;
}
int cuLaunchKernel() {
  return no_device;
}
int cuLaunchKernelEx() {
  return no_device;
}
int cuLibraryLoadFromFile() {
  return no_device;
}
int cuLibraryUnload() {
  return success;
}
int cuLinkAddData() {
  return no_device;
}
int cuLinkAddData_v2() {
  return no_device;
}
int cuLinkAddFile_v2() {
  return no_device;
}
int cuLinkComplete() {
  return no_device;
}
int cuLinkCreate() {
  return no_device;
}
int cuLinkCreate_v2() {
  return no_device;
}
int cuLinkDestroy() {
  return success;
}
int cuMemcpyDtoH_v2() {
  return no_device;
}
int cuModuleGetGlobal_v2() {
  return no_device;
}
int cuModuleUnload() {
  return success;
}
int cuOccupancyMaxPotentialClusterSize() {
  return no_device;
}
int cuStreamGetCtx() {
  return no_device;
}
int cuStreamGetGreenCtx() {
  return no_device;
}
int cuStreamSynchronize() {
  return no_device;
}
int cuTensorMapEncodeTiled() {
  return success;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
