// SPDX-License-Identifier: Apache-2.0
// Captures: what streams are told becomes a graph.
#include "support/simulated_gpu/cuda/runtime.hpp"

#include <algorithm>

namespace trireme::testing::simulated_gpu {
namespace {

void add(std::vector<std::size_t>& tips, const std::vector<std::size_t>& more) {
  for (const auto tip : more) {
    if (std::find(tips.begin(), tips.end(), tip) == tips.end()) tips.push_back(tip);
  }
}

/// Which nodes are these or come before them.
std::vector<bool> reached_from(const Capture& capture, const std::vector<std::size_t>& tips) {
  std::vector<bool> reached(capture.nodes.size());
  for (const auto tip : tips) reached[tip] = true;
  for (auto number = capture.nodes.size(); number-- > 0;) {
    if (!reached[number]) continue;
    for (const auto before : capture.nodes[number].after) reached[before] = true;
  }
  return reached;
}

}  // namespace

void Runtime::spoil(Capture& capture, cudaError_t code) {
  capture.spoilt = true;
  throw Refused{code};
}

void Runtime::expect_no_capture() {
  for (const auto& capture : captures_) {
    const bool concerns = capture->mode == cudaStreamCaptureModeGlobal ||
                          (capture->mode == cudaStreamCaptureModeThreadLocal &&
                           capture->thread == std::this_thread::get_id());
    if (concerns) spoil(*capture, cudaErrorStreamCaptureUnsupported);
  }
}

void Runtime::expect_not_captured(CUstream_st& stream) {
  if (stream.capture) spoil(*stream.capture, cudaErrorStreamCaptureUnsupported);
}

void Runtime::begin_capture(CUstream_st& stream, cudaStreamCaptureMode mode) {
  const bool legacy = std::any_of(legacy_.begin(), legacy_.end(),
                                  [&](const auto& one) { return one.get() == &stream; });
  expect(!legacy, cudaErrorStreamCaptureUnsupported);
  expect(!stream.capture, cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->members = {&stream};
  captures_.push_back(capture);
  stream.capture = capture;
  stream.tips.clear();
}

CUgraph_st* Runtime::end_capture(CUstream_st& stream) {
  const auto capture = stream.capture;
  expect(capture != nullptr, cudaErrorIllegalState);
  expect(capture->origin == &stream, cudaErrorStreamCaptureUnmatched);
  expect(capture->mode == cudaStreamCaptureModeRelaxed ||
             capture->thread == std::this_thread::get_id(),
         cudaErrorStreamCaptureWrongThread);
  const auto reached = reached_from(*capture, stream.tips);
  bool joined = true;
  for (auto* const member : capture->members) {
    joined = joined && std::all_of(member->tips.begin(), member->tips.end(),
                                   [&](std::size_t tip) { return reached[tip]; });
    member->capture.reset();
    member->tips.clear();
  }
  capture->ended = true;
  std::erase(captures_, capture);
  expect(!capture->spoilt, cudaErrorStreamCaptureInvalidated);
  expect(joined, cudaErrorStreamCaptureUnjoined);
  return add_graph(*capture);
}

/// A stream that is destroyed while it is captured.
void Runtime::leave(CUstream_st& stream) {
  stream.capture->spoilt = true;
  std::erase(stream.capture->members, &stream);
  if (stream.capture->origin == &stream) {
    for (auto* const member : stream.capture->members) member->capture.reset();
    std::erase(captures_, stream.capture);
  }
  stream.capture.reset();
}

void Runtime::record(CUevent_st& event, CUstream_st& stream) {
  expect(event.gpu == stream.gpu, cudaErrorInvalidResourceHandle);
  if (stream.capture) {
    expect(!stream.capture->spoilt, cudaErrorStreamCaptureInvalidated);
    event.capture = stream.capture;
    event.tips = stream.tips;
    event.recorded.reset();
    return;
  }
  event.capture.reset();
  join_legacy(stream);
  if (event.timed) {
    const auto when = std::make_shared<Clock::time_point>();
    event.when = when;
    stream.queue->issue([when] { *when = Clock::now(); });
  }
  event.recorded = stream.queue->mark();
}

void Runtime::wait(CUstream_st& stream, const CUevent_st& event) {
  if (stream.capture && stream.capture->spoilt) {
    throw Refused{cudaErrorStreamCaptureInvalidated};
  }
  if (event.capture) {
    auto& capture = event.capture;
    expect(!capture->ended, cudaErrorCapturedEvent);
    expect(!capture->spoilt, cudaErrorStreamCaptureInvalidated);
    if (stream.capture && stream.capture != capture) {
      stream.capture->spoilt = true;
      spoil(*capture, cudaErrorStreamCaptureMerge);
    }
    if (!stream.capture) {
      stream.capture = capture;
      stream.tips.clear();
      capture->members.push_back(&stream);
    }
    add(stream.tips, event.tips);
    return;
  }
  if (stream.capture) {
    // An event that was never recorded waits for nothing.
    if (event.recorded) spoil(*stream.capture, cudaErrorStreamCaptureIsolation);
    return;
  }
  if (event.recorded) stream.queue->follow(*event.recorded);
}

CUgraph_st* Runtime::add_graph(const Capture& capture) {
  graphs_.push_back(std::make_unique<CUgraph_st>());
  graphs_.back()->nodes = std::make_shared<const std::vector<Node>>(capture.nodes);
  return graphs_.back().get();
}

CUgraphExec_st* Runtime::add_executable(const CUgraph_st& graph) {
  executables_.push_back(std::make_unique<CUgraphExec_st>());
  executables_.back()->nodes = graph.nodes;
  return executables_.back().get();
}

/// Numbers of nodes in an order that they allow.
std::vector<std::size_t> Runtime::order_of(const std::vector<Node>& nodes) {
  std::vector<std::size_t> missing;
  std::vector<std::vector<std::size_t>> next(nodes.size());
  std::vector<std::size_t> ready;
  for (std::size_t number = 0; number < nodes.size(); ++number) {
    missing.push_back(nodes[number].after.size());
    for (const auto before : nodes[number].after) next[before].push_back(number);
    if (missing.back() == 0) ready.push_back(number);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    std::swap(ready[scheduler_->below(ready.size())], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    for (const auto number : next[order.back()]) {
      if (--missing[number] == 0) ready.push_back(number);
    }
  }
  return order;
}

void Runtime::launch(const CUgraphExec_st& executable, CUstream_st& stream) {
  expect_not_captured(stream);
  join_legacy(stream);
  const auto nodes = executable.nodes;
  for (const auto number : order_of(*nodes)) {
    stream.queue->issue(guarded((*nodes)[number].work));
  }
}

}  // namespace trireme::testing::simulated_gpu
