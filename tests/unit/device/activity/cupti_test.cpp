// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/gpu_activity.hpp"

#include "support/fake_cupti/fake_cupti.hpp"

#include <catch2/catch.hpp>
#include <dlfcn.h>

#include <map>
#include <set>

using namespace trireme;
using telemetry::GpuEventKind;
using telemetry::ObservedSpans;
using telemetry::SpanKind;
using telemetry::SpanScope;

namespace {

/// A function of the stand-in, which start_gpu_activity() has opened.
template <typename Function>
Function* of_fake(const char* name) {
  void* const library = dlopen(TRIREME_FAKE_CUPTI, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  REQUIRE(found != nullptr);
  return found;
}

std::unique_ptr<device::GpuActivity> started() {
  auto activity = device::start_gpu_activity();
  INFO((activity.ok() ? "" : activity.failure().text));
  REQUIRE(activity.ok());
  return std::move(activity).value();
}

struct Observer : telemetry::SpanObserver {
  void begin(SpanKind, const telemetry::SpanPlace&, std::uint64_t serial) override {
    last = serial;
    ++depth;
  }
  void end() override { --depth; }
  std::uint64_t last = 0;
  int depth = 0;
};

}  // namespace

TEST_CASE("what the GPU does is known by the spans that it was issued in") {
  telemetry::SpanRecorder recorder;
  const auto before = telemetry::SpanClock::now();
  auto activity = started();
  {
    const SpanScope outer(SpanKind::forward, {.micro_batch = 1});
    const SpanScope inner(SpanKind::layer_forward, {.number = 3});
  }
  { const SpanScope next(SpanKind::backward); }
  const auto recorded = activity->stop();
  const auto after = telemetry::SpanClock::now();
  recorder.stop();
  std::set<std::uint64_t> serials;
  for (const auto& span : recorder.spans()) serials.insert(span.serial);
  REQUIRE(serials.size() == 3);
  CHECK(serials.count(0) == 0);
  std::map<GpuEventKind, std::size_t> counts;
  std::set<std::uint64_t> issued_in;
  for (const auto& event : recorded.events) {
    ++counts[event.kind];
    CHECK(serials.count(event.span) == 1);
    issued_in.insert(event.span);
    // On the spans' clock, though CUPTI's is another.
    CHECK(event.begin >= (before.time_since_epoch() / std::chrono::nanoseconds(1)) - 1'000'000);
    CHECK(event.begin <= (after.time_since_epoch() / std::chrono::nanoseconds(1)) + 1'000'000);
    if (event.kind == GpuEventKind::kernel) CHECK(event.name == "kernel(float*, int)");
    if (event.kind == GpuEventKind::call) CHECK(event.name == "cudaLaunchKernel");
  }
  CHECK(issued_in == serials);
  CHECK(counts[GpuEventKind::kernel] == 3);
  CHECK(counts[GpuEventKind::call] == 3);
  CHECK(counts[GpuEventKind::memory_copy] == 1);
  CHECK(of_fake<decltype(fake_cupti_enabled)>("fake_cupti_enabled")() == 0);
  CHECK(of_fake<decltype(fake_cupti_depth)>("fake_cupti_depth")() == 0);
}

TEST_CASE("more records than fit into a buffer are all taken, and lost ones counted") {
  telemetry::SpanRecorder recorder;
  auto activity = started();
  of_fake<decltype(fake_cupti_lose)>("fake_cupti_lose")(11);
  constexpr int spans = 10'000;
  for (int at = 0; at < spans; ++at) const SpanScope span(SpanKind::norm);
  const auto recorded = activity->stop();
  CHECK(recorded.left_out == 11);
  CHECK(std::count_if(recorded.events.begin(), recorded.events.end(), [](const auto& event) {
          return event.kind == GpuEventKind::kernel;
        }) == spans);
}

TEST_CASE("an observer before is told as well, and is the only one again afterwards") {
  Observer before;
  const ObservedSpans observed(&before);
  {
    auto activity = started();
    const SpanScope span(SpanKind::norm);
    CHECK(before.depth == 1);
  }
  CHECK(before.depth == 0);
  CHECK(ObservedSpans::current() == &before);
  { const SpanScope span(SpanKind::norm); }
  CHECK(before.last > 0);
  CHECK(of_fake<decltype(fake_cupti_depth)>("fake_cupti_depth")() == 0);
}

TEST_CASE("a refusal of CUPTI is a failure with its reason, and nothing stays enabled") {
  (void)started();
  auto* const refuse = of_fake<decltype(fake_cupti_refuse)>("fake_cupti_refuse");
  auto* const enabled = of_fake<decltype(fake_cupti_enabled)>("fake_cupti_enabled");
  refuse("cuptiActivityEnable");
  const auto refused = device::start_gpu_activity();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().text.find("cuptiActivityEnable: CUPTI_ERROR_FAKE") == 0);
  CHECK(enabled() == 0);
  auto activity = started();
  refuse("cuptiActivityFlushAll");
  CHECK_THROWS(activity->stop());
  CHECK(enabled() == 0);
  CHECK(ObservedSpans::current() == nullptr);
}
