// SPDX-License-Identifier: Apache-2.0
// The stand-in of cuDNN as a library of its name, whose work streams do in their order.
#include "support/fake_cudnn/fake_cudnn.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace {

using namespace trireme::device::cudnn;
using trireme::testing::FakeCudnn;

/// Function of the program that opened this library.
template <typename Function>
Function* of_program(const char* name) {
  auto* const function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
  if (function == nullptr) throw std::logic_error(std::string("the program has no ") + name);
  return function;
}

using Work = std::function<void()>;

/// Kept for good: a graph launches it again.
void issue(void* stream, Work work) {
  const auto run = [](void* argument) { (*static_cast<const Work*>(argument))(); };
  const auto launch = of_program<decltype(cudaLaunchHostFunc)>("cudaLaunchHostFunc");
  const auto code = launch(static_cast<cudaStream_t>(stream), run, new Work(std::move(work)));
  if (code != cudaSuccess) throw std::logic_error("a run that its stream refuses");
}

FakeCudnn& fake() {
  static auto* const only = [] {
    auto* const made = new FakeCudnn;
    made->issue = &issue;
    made->settle = [] { of_program<decltype(cudaDeviceSynchronize)>("cudaDeviceSynchronize")(); };
    return made;
  }();
  return *only;
}

}  // namespace

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the names are cuDNN's.

std::size_t cudnnGetVersion() {
  return fake().api().version();
}
const char* cudnnGetErrorString(Status status) {
  return fake().api().status_text(status);
}
void cudnnGetLastErrorString(char* text, std::size_t size) {
  fake().api().last_message(text, size);
}
Status cudnnCreate(Handle* handle) {
  return fake().api().create(handle);
}
Status cudnnDestroy(Handle handle) {
  return fake().api().destroy(handle);
}
Status cudnnSetStream(Handle handle, void* stream) {
  return fake().api().set_stream(handle, stream);
}
Status cudnnBackendCreateDescriptor(Kind kind, RawDescriptor* descriptor) {
  return fake().api().create_descriptor(kind, descriptor);
}
Status cudnnBackendDestroyDescriptor(RawDescriptor descriptor) {
  return fake().api().destroy_descriptor(descriptor);
}
Status cudnnBackendSetAttribute(RawDescriptor descriptor, Attribute attribute, Type type,
                                std::int64_t count, const void* values) {
  return fake().api().set_attribute(descriptor, attribute, type, count, values);
}
Status cudnnBackendGetAttribute(RawDescriptor descriptor, Attribute attribute, Type type,
                                std::int64_t most, std::int64_t* count, void* values) {
  return fake().api().get_attribute(descriptor, attribute, type, most, count, values);
}
Status cudnnBackendFinalize(RawDescriptor descriptor) {
  return fake().api().finalize(descriptor);
}
Status cudnnBackendExecute(Handle handle, RawDescriptor plan, RawDescriptor pack) {
  return fake().api().execute(handle, plan, pack);
}

// NOLINTEND(readability-identifier-naming)
}  // extern "C"
