// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/activity/records.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using device::cuda::ActivityRecords;
using telemetry::GpuEvent;
using telemetry::GpuEventKind;

namespace {

template <typename Record>
const CUpti_Activity& as_activity(const Record& record) {
  return *reinterpret_cast<const CUpti_Activity*>(&record);
}

CUpti_ActivityKernel9 kernel(std::uint32_t correlation, std::uint64_t start, std::uint64_t end,
                             const char* name = "_ZN7trireme4normIfEEvPT_i") {
  CUpti_ActivityKernel9 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.name = name;
  record.correlationId = correlation;
  record.start = start;
  record.end = end;
  record.deviceId = 1;
  record.streamId = 21;
  return record;
}

CUpti_ActivityAPI call(CUpti_ActivityKind kind, std::uint32_t correlation, std::uint64_t start) {
  CUpti_ActivityAPI record{};
  record.kind = kind;
  record.cbid = 211;
  record.correlationId = correlation;
  record.start = start;
  record.end = start + 10;
  return record;
}

CUpti_ActivityExternalCorrelation link(std::uint32_t correlation, std::uint64_t span) {
  CUpti_ActivityExternalCorrelation record{};
  record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  record.correlationId = correlation;
  record.externalId = span;
  return record;
}

ActivityRecords made_records() {
  return ActivityRecords([](CUpti_ActivityKind kind, CUpti_CallbackId id) {
    return (kind == CUPTI_ACTIVITY_KIND_DRIVER ? "driver " : "runtime ") + std::to_string(id);
  });
}

std::int64_t shifted(std::uint64_t time) {
  return static_cast<std::int64_t>(time) - 1000;
}

}  // namespace

TEST_CASE("a kernel has its readable name, times, stream, call, and the span it was issued in") {
  auto records = made_records();
  records.take(as_activity(kernel(7, 3000, 3500)));
  records.take(as_activity(call(CUPTI_ACTIVITY_KIND_DRIVER, 7, 2010)));
  records.take(as_activity(call(CUPTI_ACTIVITY_KIND_RUNTIME, 7, 2000)));
  // Calls that have issued nothing, and what was not asked for.
  records.take(as_activity(call(CUPTI_ACTIVITY_KIND_RUNTIME, 8, 2500)));
  CUpti_Activity other{};
  other.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  records.take(other);
  records.take(as_activity(link(7, 42)));
  const auto recorded = std::move(records).finish(shifted);
  CHECK(recorded.left_out == 0);
  REQUIRE(recorded.events.size() == 2);
  const auto& issued = recorded.events[0];
  CHECK(issued.kind == GpuEventKind::call);
  CHECK(issued.name == "runtime 211");
  CHECK(issued.begin == 1000);
  CHECK(issued.correlation == 7);
  CHECK(issued.span == 42);
  const auto& done = recorded.events[1];
  CHECK(done.kind == GpuEventKind::kernel);
  CHECK(done.name == "void trireme::norm<float>(float*, int)");
  CHECK(done.begin == 2000);
  CHECK(done.end == 2500);
  CHECK(done.device == 1);
  CHECK(done.stream == 21);
  CHECK(done.correlation == 7);
  CHECK(done.span == 42);
}

TEST_CASE("a library's launch has the driver's call, and a graph's call has issued many kernels") {
  auto records = made_records();
  records.take(as_activity(call(CUPTI_ACTIVITY_KIND_DRIVER, 1, 100)));
  for (std::uint64_t at = 0; at < 3; ++at) {
    records.take(as_activity(kernel(1, 5000 + 100 * at, 5050 + 100 * at, "gemm")));
  }
  const auto recorded = std::move(records).finish(shifted);
  REQUIRE(recorded.events.size() == 4);
  CHECK(recorded.events[0].name == "driver 211");
  CHECK(recorded.events[3].name == "gemm");
  // Nobody has said from where it was issued.
  CHECK(recorded.events[3].span == 0);
}

TEST_CASE("copies and settings of memory have their direction and bytes") {
  auto records = made_records();
  CUpti_ActivityMemcpy5 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  copy.bytes = 1 << 20;
  copy.start = 2000;
  copy.end = 2100;
  copy.streamId = 9;
  records.take(as_activity(copy));
  CUpti_ActivityMemset4 set{};
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.bytes = 64;
  set.start = 1500;
  set.end = 1600;
  records.take(as_activity(set));
  const auto events = std::move(records).finish(shifted).events;
  REQUIRE(events.size() == 2);
  CHECK(events[0].kind == GpuEventKind::memory_set);
  CHECK(events[0].bytes == 64);
  CHECK(events[1].name == "Memcpy DtoH");
  CHECK(events[1].bytes == 1 << 20);
  CHECK(events[1].stream == 9);
}

TEST_CASE("records without times, and those that CUPTI has lost, are counted") {
  auto records = made_records();
  records.take(as_activity(kernel(1, 0, 0)));
  records.take(as_activity(kernel(1, 300, 200)));
  records.take(as_activity(kernel(1, 300, 400)));
  records.lost(5);
  const auto recorded = std::move(records).finish(shifted);
  CHECK(recorded.events.size() == 1);
  CHECK(recorded.left_out == 7);
}
