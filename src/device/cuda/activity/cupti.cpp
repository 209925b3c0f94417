// SPDX-License-Identifier: Apache-2.0
// CUPTI, opened when a GPU's work is to be recorded.
#include "trireme/base/cuda_libraries.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "device/cuda/activity/records.hpp"

#include <cuda.h>

#include <chrono>
#include <mutex>
#include <new>

namespace trireme::device {
namespace {

using cuda::ActivityRecords;
using telemetry::SpanClock;

constexpr auto topology = base::ExitCode::topology;
constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
/// CUPTI's own number for ids of a program.
constexpr auto external_kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

struct Api {
  decltype(cuptiGetVersion)* get_version;
  decltype(cuptiGetResultString)* get_result_string;
  decltype(cuptiGetTimestamp)* get_timestamp;
  decltype(cuptiGetCallbackName)* get_callback_name;
  decltype(cuptiActivityEnable)* enable;
  decltype(cuptiActivityDisable)* disable;
  decltype(cuptiActivityRegisterCallbacks)* register_callbacks;
  decltype(cuptiActivityGetNextRecord)* get_next_record;
  decltype(cuptiActivityGetNumDroppedRecords)* get_dropped;
  decltype(cuptiActivityFlushAll)* flush_all;
  decltype(cuptiActivityPushExternalCorrelationId)* push_id;
  decltype(cuptiActivityPopExternalCorrelationId)* pop_id;
};

base::Result<Api> load() {
  const auto name = base::format("libcupti.so.{}", CUDA_VERSION / 1000);
  auto opened = base::OpenedLibrary::open(base::places_of_cuda_library(name),
                                          "CUPTI (it tells what a GPU does)",
                                          "install it, or add its folder to LD_LIBRARY_PATH");
  if (!opened.ok()) return base::Failure{topology, opened.failure().text};
  Api api{};
  opened->find("cuptiGetVersion", api.get_version);
  opened->find("cuptiGetResultString", api.get_result_string);
  opened->find("cuptiGetTimestamp", api.get_timestamp);
  opened->find("cuptiGetCallbackName", api.get_callback_name);
  opened->find("cuptiActivityEnable", api.enable);
  opened->find("cuptiActivityDisable", api.disable);
  opened->find("cuptiActivityRegisterCallbacks", api.register_callbacks);
  opened->find("cuptiActivityGetNextRecord", api.get_next_record);
  opened->find("cuptiActivityGetNumDroppedRecords", api.get_dropped);
  opened->find("cuptiActivityFlushAll", api.flush_all);
  opened->find("cuptiActivityPushExternalCorrelationId", api.push_id);
  opened->find("cuptiActivityPopExternalCorrelationId", api.pop_id);
  std::uint32_t version = 0;
  const bool is_whole = opened->missing().empty();
  if (is_whole) api.get_version(&version);
  // Records only ever grow at their ends.
  if (is_whole && version >= CUPTI_API_VERSION) return api;
  return base::Failure{
      topology, base::format("CUPTI {} in '{}' is older than the {} that this program was built "
                             "with; install that of CUDA {}.{}",
                             version, opened->path(), CUPTI_API_VERSION, CUDA_VERSION / 1000,
                             CUDA_VERSION % 1000 / 10)};
}

// Members of the records that are read lie where newer versions have them, too.
static_assert(offsetof(CUpti_ActivityKernel9, correlationId) == 92 &&
              offsetof(CUpti_ActivityKernel9, name) == 104 &&
              offsetof(CUpti_ActivityMemcpy5, correlationId) == 44);

/// Opened once: its callbacks stay registered for as long as the process lives.
const base::Result<Api>& api() {
  static const base::Result<Api> loaded = load();
  return loaded;
}

constexpr CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY,
                                        CUPTI_ACTIVITY_KIND_MEMSET,
                                        CUPTI_ACTIVITY_KIND_RUNTIME,
                                        CUPTI_ACTIVITY_KIND_DRIVER,
                                        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

std::string call_name(CUpti_ActivityKind kind, CUpti_CallbackId id) {
  const auto domain =
      kind == CUPTI_ACTIVITY_KIND_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
  const char* name = nullptr;
  const auto found = api()->get_callback_name(domain, id, &name);
  return found == CUPTI_SUCCESS && name != nullptr ? name : base::format("call {}", id);
}

/// Where buffers go that CUPTI's threads give back.
struct Collection {
  std::mutex mutex;
  ActivityRecords* records = nullptr;  // null: nobody wants them
};
Collection& collection() {
  static Collection all;
  return all;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  constexpr std::align_val_t alignment{8};
  *buffer = static_cast<std::uint8_t*>(::operator new(buffer_bytes, alignment, std::nothrow));
  *size = *buffer == nullptr ? 0 : buffer_bytes;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t, std::size_t valid_bytes) {
  auto& [mutex, records] = collection();
  const std::lock_guard lock(mutex);
  CUpti_Activity* record = nullptr;
  while (records != nullptr && valid_bytes > 0 &&
         api()->get_next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    records->take(*record);
  }
  std::size_t dropped = 0;
  if (records != nullptr && api()->get_dropped(context, stream, &dropped) == CUPTI_SUCCESS) {
    records->lost(dropped);
  }
  constexpr std::align_val_t alignment{8};
  ::operator delete(buffer, alignment);
}

/// The same moment by CUPTI's clock and by that of spans.
struct Moment {
  std::uint64_t cupti = 0;
  std::int64_t spans = 0;
};

/// Shows serials of spans to CUPTI.
class Serials : public telemetry::SpanObserver {
 public:
  explicit Serials(SpanObserver* next) : next_(next) {}
  void begin(telemetry::SpanKind kind, const telemetry::SpanPlace& place,
             std::uint64_t serial) override {
    api()->push_id(external_kind, serial);
    if (next_ != nullptr) next_->begin(kind, place, serial);
  }
  void end() override {
    std::uint64_t last = 0;
    api()->pop_id(external_kind, &last);
    if (next_ != nullptr) next_->end();
  }

 private:
  SpanObserver* next_;
};

class Cupti : public GpuActivity {
 public:
  Cupti() : records_(call_name), serials_(telemetry::ObservedSpans::current()) {
    const std::lock_guard lock(collection().mutex);
    collection().records = &records_;
  }
  Cupti(const Cupti&) = delete;
  Cupti& operator=(const Cupti&) = delete;
  ~Cupti() override { leave(); }

  base::Status start() {
    for (const auto kind : kinds) {
      if (auto enabled = checked(api()->enable(kind), "cuptiActivityEnable"); !enabled.ok()) {
        return enabled;
      }
      ++enabled_;
    }
    begin_ = now();
    observed_.emplace(&serials_);
    return {};
  }

  Recorded stop() override {
    observed_.reset();
    const auto end = now();
    // Work under way stays out; what is done is all given back.
    const auto flushed = checked(api()->flush_all(0), "cuptiActivityFlushAll");
    leave();
    base::success_or_throw(flushed);
    // Both clocks count nanoseconds, and drift apart evenly.
    const double length = static_cast<double>(end.cupti - begin_.cupti);
    const double rate = length > 0 ? static_cast<double>(end.spans - begin_.spans) / length : 1.0;
    return std::move(records_).finish([this, rate](std::uint64_t time) {
      const auto since = static_cast<std::int64_t>(time - begin_.cupti);
      return begin_.spans + static_cast<std::int64_t>(static_cast<double>(since) * rate);
    });
  }

 private:
  static base::Status checked(CUptiResult result, const char* call) {
    if (result == CUPTI_SUCCESS) return {};
    const char* text = nullptr;
    api()->get_result_string(result, &text);
    return base::Failure{
        topology, base::format("{}: {} (another tool may use CUPTI, or the driver allows it to "
                               "nobody but root)",
                               call, text == nullptr ? "unknown error" : text)};
  }

  static Moment now() {
    Moment moment;
    const auto before = SpanClock::now();
    api()->get_timestamp(&moment.cupti);
    const auto between = before + (SpanClock::now() - before) / 2;
    moment.spans = std::chrono::nanoseconds(between.time_since_epoch()).count();
    return moment;
  }

  void leave() {
    observed_.reset();
    while (enabled_ > 0) api()->disable(kinds[--enabled_]);
    {
      const std::lock_guard lock(collection().mutex);
      collection().records = nullptr;
    }
    // Records that nobody wants any more would come with the next recording's.
    api()->flush_all(0);
  }

  ActivityRecords records_;
  Serials serials_;
  std::size_t enabled_ = 0;
  Moment begin_;
  std::optional<telemetry::ObservedSpans> observed_;
};

}  // namespace

base::Result<std::unique_ptr<GpuActivity>> start_gpu_activity() {
  if (!api().ok()) return api().failure();
  // Order: callbacks before anything is enabled.
  static const auto registered = api()->register_callbacks(&give_buffer, &take_buffer);
  if (registered != CUPTI_SUCCESS) {
    return base::Failure{topology, "CUPTI takes no callbacks: another tool uses it"};
  }
  auto activity = std::make_unique<Cupti>();
  if (auto started = activity->start(); !started.ok()) return started.failure();
  return std::unique_ptr<GpuActivity>(std::move(activity));
}

}  // namespace trireme::device
