// SPDX-License-Identifier: Apache-2.0
// Captures, and what may not be done meanwhile.
#include "host_runtime.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <functional>
#include <thread>

using namespace trireme;
using namespace trireme::testing;

namespace {

constexpr std::size_t bytes = 64;

void begin(const Lane& lane) {
  check(cudaStreamBeginCapture(lane.raw, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
}

/// Whether a deed is refused so while a lane is captured, and spoils the capture.
void expect_spoils(cudaError_t code, const std::function<cudaError_t(const Lane&)>& deed) {
  const Lane lane;
  const auto memory = allocate_device(bytes);
  begin(lane);
  lane.set(memory, 1, bytes);
  CHECK(deed(lane) == code);
  CHECK(cudaMemsetAsync(memory.get(), 2, bytes, lane.raw) == cudaErrorStreamCaptureInvalidated);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(lane.raw, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  // It works again.
  lane.set(memory, 3, bytes);
  lane.owner.view().synchronize();
}

cudaGraphExec_t executable_of(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return executable;
}

/// value -> 2 * value + addend, in a stream's order.
struct Step {
  int* value;
  int addend;
};
void take(const Lane& lane, Step& step) {
  const auto act = [](void* argument) {
    const auto& now = *static_cast<Step*>(argument);
    *now.value = 2 * *now.value + now.addend;
  };
  check(cudaLaunchHostFunc(lane.raw, act, &step), "cudaLaunchHostFunc");
}

}  // namespace

TEST_CASE("what is captured is not done, and done at each launch") {
  for_each_seed([](auto) {
    const Lane lane;
    int value = 1;
    Step first{&value, 1};
    Step second{&value, 10};
    begin(lane);
    take(lane, first);
    take(lane, second);
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(lane.raw, &graph), "cudaStreamEndCapture");
    CHECK(value == 1);
    auto* const executable = executable_of(graph);
    for (int launch = 0; launch < 2; ++launch) {
      check(cudaGraphLaunch(executable, lane.raw), "cudaGraphLaunch");
    }
    lane.owner.view().synchronize();
    CHECK(value == (2 * (2 * (2 * (2 * 1 + 1) + 10) + 1) + 10));
    check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  });
}

TEST_CASE("streams that follow a captured event are part of the capture, in the order of events") {
  int swapped = 0;
  for_each_seed([&](auto) {
    const Lane lane;
    const Lane side;
    const auto fork = device::cuda::Event::make();
    const auto join = device::cuda::Event::make();
    int value = 1;
    std::array<Step, 4> steps{{{&value, 1}, {&value, 2}, {&value, 4}, {&value, 1000}}};
    begin(lane);
    take(lane, steps[0]);
    lane.owner.view().record(fork.view());
    side.owner.view().wait_for(fork.view());
    take(lane, steps[1]);
    take(side, steps[2]);
    side.owner.view().record(join.view());
    lane.owner.view().wait_for(join.view());
    take(lane, steps[3]);
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(lane.raw, &graph), "cudaStreamEndCapture");
    auto* const executable = executable_of(graph);
    check(cudaGraphLaunch(executable, lane.raw), "cudaGraphLaunch");
    lane.owner.view().synchronize();
    const int in_order = 2 * (2 * (2 * 3 + 2) + 4) + 1000;
    const int out_of_order = 2 * (2 * (2 * 3 + 4) + 2) + 1000;
    CHECK((value == in_order || value == out_of_order));
    if (value == out_of_order) ++swapped;
    check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  });
  CHECK(swapped > 0);
  CHECK(swapped < static_cast<int>(seeds));
}

TEST_CASE("a graph that can be launched takes memory that no allocation is") {
  simulated_gpu::Runtime::restart({1, 1});
  const Lane lane;
  int value = 1;
  Step step{&value, 1};
  begin(lane);
  take(lane, step);
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(lane.raw, &graph), "cudaStreamEndCapture");
  const auto before = taken_bytes();
  auto* const executable = executable_of(graph);
  CHECK(taken_bytes() == before + simulated_gpu::Runtime::graph_bytes);
  check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  CHECK(taken_bytes() == before);
}

TEST_CASE("a capture is spoilt by what could wait for it") {
  simulated_gpu::Runtime::restart({1, 1});
  expect_spoils(cudaErrorStreamCaptureUnsupported, [](const Lane&) {
    void* memory = nullptr;
    return cudaMalloc(&memory, bytes);
  });
  const auto other = allocate_device(bytes);
  expect_spoils(cudaErrorStreamCaptureUnsupported,
                [&](const Lane&) { return cudaFree(other.get()); });
  expect_spoils(cudaErrorStreamCaptureUnsupported,
                [](const Lane& lane) { return cudaStreamSynchronize(lane.raw); });
  expect_spoils(cudaErrorStreamCaptureUnsupported,
                [](const Lane&) { return cudaDeviceSynchronize(); });
  expect_spoils(cudaErrorStreamCaptureUnsupported, [&](const Lane&) {
    char value = 0;
    return cudaMemcpy(&value, other.get(), 1, cudaMemcpyDeviceToHost);
  });
  const auto event = device::cuda::Event::make();
  expect_spoils(cudaErrorCapturedEvent, [&](const Lane& lane) {
    lane.owner.view().record(event.view());
    return cudaEventQuery(event.view().raw());
  });
  // The event stays one of a capture until it is recorded elsewhere.
  CHECK(cudaEventQuery(event.view().raw()) == cudaErrorCapturedEvent);
  const Lane elsewhere;
  elsewhere.owner.view().record(event.view());
  event.view().wait();
  expect_spoils(cudaErrorStreamCaptureIsolation, [&](const Lane& lane) {
    return cudaStreamWaitEvent(lane.raw, event.view().raw(), 0);
  });
}

TEST_CASE("a capture ends with its streams joined, where and by whom it was begun") {
  simulated_gpu::Runtime::restart({1, 1});
  const Lane lane;
  const Lane side;
  const auto memory = allocate_device(bytes);
  const auto fork = device::cuda::Event::make();
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(lane.raw, &graph) == cudaErrorIllegalState);
  begin(lane);
  lane.owner.view().record(fork.view());
  side.owner.view().wait_for(fork.view());
  side.set(memory, 1, bytes);
  CHECK(cudaStreamEndCapture(side.raw, &graph) == cudaErrorStreamCaptureUnmatched);
  auto code = cudaSuccess;
  std::thread([&] { code = cudaStreamEndCapture(lane.raw, &graph); }).join();
  CHECK(code == cudaErrorStreamCaptureWrongThread);
  CHECK(cudaStreamEndCapture(lane.raw, &graph) == cudaErrorStreamCaptureUnjoined);
  side.set(memory, 2, bytes);
  side.owner.view().synchronize();
}

TEST_CASE("the legacy stream is not used while a stream that waits for it is captured") {
  simulated_gpu::Runtime::restart({1, 1});
  const auto memory = allocate_device(bytes);
  cudaStream_t waits = nullptr;
  check(cudaStreamCreateWithFlags(&waits, cudaStreamDefault), "cudaStreamCreateWithFlags");
  check(cudaStreamBeginCapture(waits, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  CHECK(cudaMemsetAsync(memory.get(), 1, bytes, nullptr) == cudaErrorStreamCaptureImplicit);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(waits, &graph) == cudaErrorStreamCaptureInvalidated);
  check(cudaStreamDestroy(waits), "cudaStreamDestroy");
}
