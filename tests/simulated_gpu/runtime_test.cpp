// SPDX-License-Identifier: Apache-2.0
// The GPU that is made of the host catches what a GPU would not forgive.
#include "count_up.hpp"
#include "host_runtime.hpp"
#include "support/end_of_child.hpp"

#include <catch2/catch.hpp>
#include <signal.h>

#include <array>
#include <functional>
#include <string>

using namespace trireme;
using namespace trireme::testing;
using Catch::Matchers::Contains;

namespace {

constexpr std::size_t bytes = 256;

/// End of a child with a GPU of its own.
End end_on_gpu(const std::function<void()>& deed) {
  return end_of([&] {
    simulated_gpu::Runtime::restart({1, 1});
    deed();
  });
}

void look_at(const void* memory) {
  volatile char seen = static_cast<const char*>(memory)[3];
  static_cast<void>(seen);
}

cudaError_t launch_count_up(const Lane& lane, void* memory, int count) {
  auto code = cudaSuccess;
  with_count_up(static_cast<float*>(memory), count, [&](const void* kernel, void** arguments) {
    code = cudaLaunchKernel(kernel, dim3(2), dim3(32), arguments, 0, lane.raw);
  });
  return code;
}

/// Number that the second of two streams reads where the first writes.
int seen_by_second(bool wait) {
  const Lane first;
  const Lane second;
  const auto event = device::cuda::Event::make();
  const auto memory = allocate_device(bytes);
  const auto result = allocate_pinned(bytes);
  first.set(memory, 1, bytes);
  first.owner.view().synchronize();
  first.set(memory, 2, bytes);
  first.owner.view().record(event.view());
  if (wait) second.owner.view().wait_for(event.view());
  second.copy(result.get(), memory.get(), bytes, cudaMemcpyDeviceToHost);
  second.owner.view().synchronize();
  return static_cast<const char*>(result.get())[bytes - 1];
}

}  // namespace

TEST_CASE(
    "a wait that is missing between two streams is found by some seed, and none that is there") {
  int early = 0;
  int late = 0;
  for_each_seed([&](auto) {
    CHECK(seen_by_second(true) == 2);
    ++(seen_by_second(false) == 2 ? late : early);
  });
  CHECK(early > 0);
  CHECK(late > 0);
}

TEST_CASE("what the host does not wait for it does not have, for some seed") {
  int early = 0;
  for_each_seed([&](auto) {
    const Lane lane;
    const auto memory = allocate_device(bytes);
    const auto result = allocate_pinned(bytes);
    std::memset(result.get(), 7, bytes);
    lane.set(memory, 1, bytes);
    lane.copy(result.get(), memory.get(), bytes, cudaMemcpyDeviceToHost);
    if (*static_cast<const char*>(result.get()) == 7) ++early;
    lane.owner.view().synchronize();
    CHECK(*static_cast<const char*>(result.get()) == 1);
  });
  CHECK(early > 0);
}

TEST_CASE("the host cannot touch a GPU's memory, nor anyone what was freed") {
  const auto end = end_on_gpu([] {
    const void* address = allocate_device(bytes).get();
    look_at(address);
  });
  CHECK(end.signal == SIGSEGV);
  CHECK_THAT(end.words,
             Contains("the host touched byte 3 of 256 of 'device memory', which was freed"));
  const auto alive = end_on_gpu([] {
    const Lane lane;
    const auto memory = allocate_device(bytes);
    lane.set(memory, 1, bytes);
    lane.owner.view().synchronize();
    look_at(memory.get());
  });
  CHECK(alive.signal == SIGSEGV);
  CHECK_THAT(alive.words, Contains("byte 3 of 256 of 'device memory', which is out of its reach"));
}

TEST_CASE("fresh memory is poison") {
  simulated_gpu::Runtime::restart({1, 1});
  const auto memory = allocate_device(bytes);
  float value = 0;
  check(cudaMemcpy(&value, memory.get(), sizeof(value), cudaMemcpyDeviceToHost), "cudaMemcpy");
  CHECK(value != value);
}

TEST_CASE("kernels run with the arguments of their launch") {
  for_each_seed([](auto) {
    const Lane lane;
    const auto memory = allocate_device(64 * sizeof(float));
    REQUIRE(launch_count_up(lane, memory.get(), 64) == cudaSuccess);
    std::array<float, 64> values{};
    lane.copy(values.data(), memory.get(), sizeof(values), cudaMemcpyDeviceToHost);
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == static_cast<float>(i));
  });
}

TEST_CASE("a kernel that leaves its memory breaks the GPU for good") {
  simulated_gpu::Runtime::restart({1, 1});
  const Lane lane;
  const auto memory = allocate_device(60 * sizeof(float));
  // As on a GPU, whoever waits hears of it.
  static_cast<void>(launch_count_up(lane, memory.get(), 64));
  CHECK(cudaStreamSynchronize(lane.raw) == cudaErrorLaunchFailure);
  CHECK(cudaStreamQuery(lane.raw) == cudaErrorLaunchFailure);
  void* more = nullptr;
  CHECK(cudaMalloc(&more, 1) == cudaErrorLaunchFailure);
  CHECK_THAT(simulated_gpu::Runtime::here().fault(),
             Contains("writes 4 bytes out of bounds: byte"));
  simulated_gpu::Runtime::restart({1, 1});
}

TEST_CASE("launches that no GPU can run are refused") {
  simulated_gpu::Runtime::restart({1, 1});
  const Lane lane;
  void* none[] = {nullptr};
  int number = 0;
  CHECK(cudaLaunchKernel(&number, dim3(1), dim3(32), none, 0, lane.raw) ==
        cudaErrorInvalidDeviceFunction);
  const auto memory = allocate_device(bytes);
  with_count_up(static_cast<float*>(memory.get()), 1, [&](const void* kernel, void** arguments) {
    CHECK(cudaLaunchKernel(kernel, dim3(0), dim3(32), arguments, 0, lane.raw) ==
          cudaErrorInvalidConfiguration);
    CHECK(cudaLaunchKernel(kernel, dim3(1), dim3(1056), arguments, 0, lane.raw) ==
          cudaErrorInvalidConfiguration);
  });
}

TEST_CASE("copies lie inside of memory that is there, and go where they are said to go") {
  simulated_gpu::Runtime::restart({1, 1});
  const Lane lane;
  const auto memory = allocate_device(bytes);
  std::array<char, 2 * bytes> host{};
  const auto copy = [&](void* to, const void* from, std::size_t count, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, count, kind, lane.raw);
  };
  CHECK(copy(host.data(), memory.get(), bytes + 1, cudaMemcpyDeviceToHost) ==
        cudaErrorInvalidValue);
  CHECK(copy(host.data(), memory.get(), bytes, cudaMemcpyHostToDevice) ==
        cudaErrorInvalidMemcpyDirection);
  CHECK(copy(memory.get(), host.data(), bytes, cudaMemcpyDeviceToDevice) ==
        cudaErrorInvalidMemcpyDirection);
  CHECK(copy(host.data(), memory.get(), bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cudaMemsetAsync(host.data(), 0, bytes, lane.raw) == cudaErrorInvalidValue);
}

TEST_CASE(
    "the host's own memory may be written again after a copy from it, pinned memory may not") {
  int late = 0;
  for_each_seed([&](auto) {
    const Lane lane;
    const auto memory = allocate_device(bytes);
    const auto pinned = allocate_pinned(bytes);
    std::array<char, bytes> own{};
    std::array<char, bytes> found{};
    own.fill(1);
    lane.copy(memory.get(), own.data(), bytes, cudaMemcpyHostToDevice);
    own.fill(2);
    lane.copy(found.data(), memory.get(), bytes, cudaMemcpyDeviceToHost);
    CHECK(found[5] == 1);
    std::memset(pinned.get(), 3, bytes);
    lane.copy(memory.get(), pinned.get(), bytes, cudaMemcpyHostToDevice);
    std::memset(pinned.get(), 4, bytes);
    lane.copy(found.data(), memory.get(), bytes, cudaMemcpyDeviceToHost);
    if (found[5] == 4) ++late;
  });
  CHECK(late > 0);
}

TEST_CASE("a copy on the legacy stream waits for streams that say so, and for no others") {
  int early = 0;
  for_each_seed([&](auto) {
    const auto memory = allocate_device(1);
    const auto seen = [&] {
      char value = 0;
      check(cudaMemcpy(&value, memory.get(), 1, cudaMemcpyDeviceToHost), "cudaMemcpy");
      return value;
    };
    const Lane lane;
    lane.set(memory, 1, 1);
    if (seen() != 1) ++early;
    cudaStream_t waits = nullptr;
    check(cudaStreamCreateWithFlags(&waits, cudaStreamDefault), "cudaStreamCreateWithFlags");
    lane.owner.view().synchronize();
    check(cudaMemsetAsync(memory.get(), 2, 1, waits), "cudaMemsetAsync");
    CHECK(seen() == 2);
    check(cudaStreamDestroy(waits), "cudaStreamDestroy");
  });
  CHECK(early > 0);
}

TEST_CASE("a function of the host runs in its stream's order and cannot call the runtime") {
  struct Seen {
    const void* memory = nullptr;
    char value = 0;
    cudaError_t answer = cudaSuccess;
  };
  for_each_seed([](auto) {
    const Lane lane;
    const auto memory = allocate_device(bytes);
    Seen seen{memory.get()};
    lane.set(memory, 5, bytes);
    const auto look = [](void* argument) {
      auto& found = *static_cast<Seen*>(argument);
      found.value = *static_cast<const char*>(found.memory);
      found.answer = cudaSetDevice(0);
    };
    check(cudaLaunchHostFunc(lane.raw, look, &seen), "cudaLaunchHostFunc");
    lane.set(memory, 6, bytes);
    lane.owner.view().synchronize();
    CHECK(seen.value == 5);
    CHECK(seen.answer == cudaErrorNotPermitted);
  });
}

TEST_CASE("handles and addresses that are not there are refused") {
  simulated_gpu::Runtime::restart({1, 1});
  const Lane lane;
  auto* const nothing = reinterpret_cast<cudaStream_t>(std::uintptr_t{0x1230});
  CHECK(cudaStreamSynchronize(nothing) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaSuccess);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  // Never recorded: there is nothing to wait for.
  CHECK(cudaEventQuery(event) == cudaSuccess);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  CHECK(cudaEventRecord(event, lane.raw) == cudaErrorInvalidResourceHandle);
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  CHECK(cudaFreeHost(memory) == cudaErrorInvalidValue);
  CHECK(cudaFree(static_cast<char*>(memory) + 1) == cudaErrorInvalidValue);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaErrorInvalidValue);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
}

TEST_CASE("times are those of events with a clock that have passed") {
  simulated_gpu::Runtime::restart({3, 1});  // lazy
  const Lane lane;
  const auto plain = device::cuda::Event::make();
  const auto begin = device::cuda::Event::make_timed();
  const auto end = device::cuda::Event::make_timed();
  float took = -1;
  const auto elapsed = [&](const device::cuda::Event& from) {
    return cudaEventElapsedTime(&took, from.view().raw(), end.view().raw());
  };
  CHECK(elapsed(begin) == cudaErrorInvalidResourceHandle);
  lane.owner.view().record(begin.view());
  lane.owner.view().record(end.view());
  CHECK(elapsed(plain) == cudaErrorInvalidResourceHandle);
  CHECK(elapsed(begin) == cudaErrorNotReady);
  end.view().wait();
  CHECK(elapsed(begin) == cudaSuccess);
  CHECK(took >= 0);
}

TEST_CASE("memory is taken in large pieces, and no more than there is") {
  simulated_gpu::Runtime::restart({1, 1});
  const auto before = taken_bytes();
  CHECK(before > 0);
  {
    const auto memory = allocate_device(std::size_t{3} << 20);
    CHECK(taken_bytes() == before + (std::size_t{4} << 20));
  }
  CHECK(taken_bytes() == before);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, std::size_t{141} << 30) == cudaErrorMemoryAllocation);
}
