// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/attention/growing_workspace.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <memory>

using trireme::device::cuda::GrowingWorkspace;

namespace {

/// Memory that says when it is gone.
struct Heap {
  using Block = std::shared_ptr<std::byte[]>;
  std::map<void*, std::weak_ptr<std::byte[]>> blocks;
  int waits = 0;

  Block allocate(std::size_t bytes) {
    Block block(new std::byte[bytes]);
    blocks[block.get()] = block;
    return block;
  }
  bool is_there(void* address) { return !blocks.at(address).expired(); }
};

}  // namespace

TEST_CASE("a workspace grows to the largest request, and a graph's block outlives its growth") {
  Heap heap;
  using Workspace = GrowingWorkspace<Heap::Block>;
  Workspace workspace([&](std::size_t bytes) { return heap.allocate(bytes); },
                      [&] { ++heap.waits; });
  auto* const first = workspace.take(100, Workspace::Use::issued);
  CHECK(workspace.take(40, Workspace::Use::issued) == first);
  CHECK(workspace.total_bytes() == 100);
  // Nothing names it any more.
  auto* const second = workspace.take(200, Workspace::Use::issued);
  CHECK_FALSE(heap.is_there(first));
  CHECK(workspace.total_bytes() == 200);
  // A graph of a small forward, then a larger backward: what the graph names stays.
  CHECK(workspace.take(10, Workspace::Use::captured) == second);
  auto* const third = workspace.take(300, Workspace::Use::issued);
  CHECK(third != second);
  CHECK(heap.is_there(second));
  CHECK(workspace.total_bytes() == 500);
  // And only that.
  workspace.take(400, Workspace::Use::issued);
  CHECK(heap.is_there(second));
  CHECK_FALSE(heap.is_there(third));
  CHECK(workspace.total_bytes() == 600);
  CHECK(heap.waits == 4);
}
