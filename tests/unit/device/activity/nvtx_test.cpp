// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/gpu_activity.hpp"

#include "support/fake_nvtx/fake_nvtx.hpp"

#include <catch2/catch.hpp>
#include <dlfcn.h>

using namespace trireme;
using telemetry::ObservedSpans;
using telemetry::SpanKind;
using telemetry::SpanScope;

TEST_CASE("a tool that has started the program sees spans as ranges that nest") {
  const auto ranges = device::make_nvtx_ranges();
  REQUIRE(ranges != nullptr);
  {
    // Nothing is recorded: ranges are for the tool alone.
    const ObservedSpans observed(ranges.get());
    const telemetry::SpanRange step(SpanKind::step, {.number = 12});
    const SpanScope forward(SpanKind::forward, {.micro_batch = 3});
    { const SpanScope layer(SpanKind::layer_forward, {.number = 5}); }
    const SpanScope head(SpanKind::head);
  }
  { const SpanScope behind(SpanKind::norm); }
  void* const tool = dlopen(TRIREME_FAKE_NVTX, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(tool != nullptr);
  const auto text = reinterpret_cast<decltype(&fake_nvtx_ranges)>(dlsym(tool, "fake_nvtx_ranges"));
  const auto depth = reinterpret_cast<decltype(&fake_nvtx_depth)>(dlsym(tool, "fake_nvtx_depth"));
  CHECK(std::string(text()) ==
        "ProfilerStep#12\n  forward of micro-batch 3\n    layer forward 5\n    head\n");
  CHECK(depth() == 0);
}
