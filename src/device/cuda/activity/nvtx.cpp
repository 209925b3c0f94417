// SPDX-License-Identifier: Apache-2.0
// Spans as NVTX ranges. The headers of NVTX open the tool's library by themselves, where a tool has
// started the program.
#include "trireme/device/gpu_activity.hpp"
#include "trireme/telemetry/span_text.hpp"

#include <nvtx3/nvToolsExt.h>

namespace trireme::device {
namespace {

class NvtxRanges : public telemetry::SpanObserver {
 public:
  explicit NvtxRanges(SpanObserver* next) : domain_(nvtxDomainCreateA("trireme")), next_(next) {}
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;
  ~NvtxRanges() override { nvtxDomainDestroy(domain_); }

  void begin(telemetry::SpanKind kind, const telemetry::SpanPlace& place,
             std::uint64_t serial) override {
    const auto text = telemetry::span_text(kind, place);
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = text.c_str();
    nvtxDomainRangePushEx(domain_, &event);
    if (next_ != nullptr) next_->begin(kind, place, serial);
  }
  void end() override {
    nvtxDomainRangePop(domain_);
    if (next_ != nullptr) next_->end();
  }

 private:
  nvtxDomainHandle_t domain_;
  SpanObserver* next_;
};

}  // namespace

std::unique_ptr<telemetry::SpanObserver> make_nvtx_ranges(telemetry::SpanObserver* next) {
  return std::make_unique<NvtxRanges>(next);
}

}  // namespace trireme::device
