// SPDX-License-Identifier: Apache-2.0
// Stands in for CUPTI (libcupti.so) where there is no GPU: the functions that device/cuda/activity
// calls, with buffers as the real ones fill them. For each id that is pushed it tells of a call of
// the runtime, with the driver's within it, that launches a kernel, and for each third one of a
// copy: nothing runs. Misuse ends the program.
#include "support/fake_cupti/fake_cupti.hpp"

#include <cupti.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t clock_offset = 1'000'000'000'000'000;

struct State {
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::set<CUpti_ActivityKind> enabled;
  std::vector<std::uint64_t> stack;
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0;
  std::size_t used = 0;
  std::uint32_t correlation = 0;
  std::uint64_t lost = 0;
  std::string refused;
};
State state;

[[noreturn]] void misuse(const char* what) {
  std::fprintf(stderr, "fake CUPTI: %s\n", what);
  std::abort();
}

bool is_refused(const char* function) {
  if (state.refused != function) return false;
  state.refused.clear();
  return true;
}

std::uint64_t now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(since).count() + clock_offset);
}

void give_back() {
  if (state.buffer == nullptr) return;
  state.complete(nullptr, 0, state.buffer, state.size, state.used);
  state.buffer = nullptr;
  state.used = 0;
}

template <typename Record>
void emit(const Record& record) {
  if (state.enabled.count(record.kind) == 0) return;
  if (state.buffer != nullptr && state.used + sizeof(record) > state.size) give_back();
  if (state.buffer == nullptr) {
    std::size_t most_records = 0;
    state.request(&state.buffer, &state.size, &most_records);
    if (state.buffer == nullptr || reinterpret_cast<std::uintptr_t>(state.buffer) % 8 != 0) {
      misuse("a buffer is none, or not aligned to 8 bytes");
    }
  }
  std::memcpy(state.buffer + state.used, &record, sizeof(record));
  state.used += sizeof(record);
}

std::size_t size_of(CUpti_ActivityKind kind) {
  switch (static_cast<int>(kind)) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    default:
      return sizeof(CUpti_ActivityAPI);
  }
}

void emit_call(CUpti_ActivityKind kind, CUpti_CallbackId id) {
  CUpti_ActivityAPI call{};
  call.kind = kind;
  call.cbid = id;
  call.start = now();
  call.end = call.start + 100;
  call.correlationId = state.correlation;
  emit(call);
}

void emit_launch(std::uint64_t id) {
  ++state.correlation;
  CUpti_ActivityExternalCorrelation link{};
  link.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  link.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  link.externalId = id;
  link.correlationId = state.correlation;
  emit(link);
  emit_call(CUPTI_ACTIVITY_KIND_DRIVER, 7);
  emit_call(CUPTI_ACTIVITY_KIND_RUNTIME, 5);
  CUpti_ActivityKernel9 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = "_Z6kernelPfi";
  kernel.start = now();
  kernel.end = kernel.start + 500;
  kernel.streamId = 13;
  kernel.correlationId = state.correlation;
  emit(kernel);
  if (state.correlation % 3 != 0) return;
  CUpti_ActivityMemcpy5 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.bytes = 4096;
  copy.start = kernel.start;
  copy.end = kernel.end;
  copy.streamId = 14;
  copy.correlationId = state.correlation;
  emit(copy);
}

}  // namespace

extern "C" {

void fake_cupti_refuse(const char* function) {
  state.refused = function == nullptr ? "" : function;
}
void fake_cupti_lose(std::uint64_t records) {
  state.lost = records;
}
std::int64_t fake_cupti_clock_offset() {
  return clock_offset;
}
int fake_cupti_depth() {
  return static_cast<int>(state.stack.size());
}
int fake_cupti_enabled() {
  return static_cast<int>(state.enabled.size());
}

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "CUPTI_ERROR_FAKE";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(std::uint64_t* time) {
  *time = now();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t, const char** name) {
  *name = domain == CUPTI_CB_DOMAIN_DRIVER_API ? "cuLaunchKernel" : "cudaLaunchKernel";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  if (state.request != nullptr) misuse("callbacks are registered twice");
  state.request = request;
  state.complete = complete;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (state.request == nullptr) misuse("a kind is enabled before callbacks are registered");
  if (is_refused("cuptiActivityEnable")) return CUPTI_ERROR_NOT_COMPATIBLE;
  if (!state.enabled.insert(kind).second) misuse("a kind is enabled twice");
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  if (state.enabled.erase(kind) == 0) misuse("a kind is disabled that was not enabled");
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                       CUpti_Activity** record) {
  auto* next = reinterpret_cast<std::uint8_t*>(*record);
  if (next == nullptr) {
    next = buffer;
  } else {
    CUpti_ActivityKind kind{};
    std::memcpy(&kind, next, sizeof(kind));
    next += size_of(kind);
  }
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = state.lost;
  state.lost = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  if (is_refused("cuptiActivityFlushAll")) return CUPTI_ERROR_NOT_INITIALIZED;
  give_back();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   std::uint64_t id) {
  if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) misuse("a kind of id that is another's");
  state.stack.push_back(id);
  emit_launch(id);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind,
                                                  std::uint64_t* last) {
  if (state.stack.empty()) misuse("more ids are popped than were pushed");
  *last = state.stack.back();
  state.stack.pop_back();
  return CUPTI_SUCCESS;
}
}
