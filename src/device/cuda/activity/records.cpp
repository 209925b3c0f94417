// SPDX-License-Identifier: Apache-2.0
#include "records.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace trireme::device::cuda {
namespace {

using telemetry::GpuEvent;
using telemetry::GpuEventKind;

/// Names of templates may have thousands of letters.
constexpr std::size_t longest_name = 300;

std::string readable(const char* symbol) {
  if (symbol == nullptr) return "kernel";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  return std::string(base::cut_utf8(status == 0 ? name.get() : symbol, longest_name));
}

/// "DtoH", as CUPTI's readers write it.
const char* copy_name(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return "HtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "PtoP";
    default:
      return "other";
  }
}

/// A record of a kind lies where its first member does; they have no alignment of their own.
template <typename Record>
Record as(const CUpti_Activity& record) {
  Record copy{};
  std::memcpy(&copy, &record, sizeof(copy));
  return copy;
}

/// Fields that records of all kinds of work have.
template <typename Record>
GpuEvent event_of(GpuEventKind kind, std::string name, const Record& record) {
  return {.kind = kind,
          .name = std::move(name),
          .device = static_cast<int>(record.deviceId),
          .stream = static_cast<int>(record.streamId),
          .correlation = record.correlationId};
}

}  // namespace

void ActivityRecords::add(Raw raw) {
  if (work_.size() == GpuActivity::most_events || raw.begin == 0 || raw.end < raw.begin) {
    ++left_out_;
  } else {
    work_.push_back(std::move(raw));
  }
}

void ActivityRecords::take_call(const CUpti_ActivityAPI& call, CUpti_ActivityKind kind) {
  if (calls_.size() == GpuActivity::most_events) return;
  auto& known = calls_[call.correlationId];
  const bool is_driver = kind == CUPTI_ACTIVITY_KIND_DRIVER;
  if (is_driver && known.begin != 0) return;
  known = {{.kind = GpuEventKind::call,
            .name = call_name_(kind, call.cbid),
            .correlation = call.correlationId},
           call.start,
           call.end};
}

void ActivityRecords::take(const CUpti_Activity& record) {
  // Kinds are many, and grow with CUPTI.
  const auto kind = as<CUpti_Activity>(record).kind;
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_KERNEL) {
    const auto kernel = as<CUpti_ActivityKernel9>(record);
    add({event_of(GpuEventKind::kernel, readable(kernel.name), kernel), kernel.start, kernel.end});
  } else if (kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto copy = as<CUpti_ActivityMemcpy5>(record);
    auto event = event_of(GpuEventKind::memory_copy,
                          base::format("Memcpy {}", copy_name(copy.copyKind)), copy);
    event.bytes = copy.bytes;
    add({std::move(event), copy.start, copy.end});
  } else if (kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto set = as<CUpti_ActivityMemset4>(record);
    auto event = event_of(GpuEventKind::memory_set, "Memset", set);
    event.bytes = set.bytes;
    add({std::move(event), set.start, set.end});
  } else if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER) {
    take_call(as<CUpti_ActivityAPI>(record), kind);
  } else if (kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const auto link = as<CUpti_ActivityExternalCorrelation>(record);
    spans_[link.correlationId] = link.externalId;
  }
}

GpuActivity::Recorded ActivityRecords::finish(const Clock& clock) && {
  GpuActivity::Recorded recorded;
  recorded.left_out = left_out_;
  const auto write = [&](Raw& raw) {
    raw.event.begin = clock(raw.begin);
    raw.event.end = clock(raw.end);
    const auto span = spans_.find(raw.event.correlation);
    if (span != spans_.end()) raw.event.span = span->second;
    recorded.events.push_back(std::move(raw.event));
  };
  for (auto& work : work_) {
    // A graph's call has issued many.
    if (const auto call = calls_.find(work.event.correlation); call != calls_.end()) {
      write(call->second);
      calls_.erase(call);
    }
    write(work);
  }
  std::stable_sort(recorded.events.begin(), recorded.events.end(),
                   [](const auto& one, const auto& other) { return one.begin < other.begin; });
  return recorded;
}

}  // namespace trireme::device::cuda
