#include "graphs.hpp"

#include "outside_recordings.hpp"

namespace trireme::engine {

Graphs::Graphs(const EngineOptions& options, comm::ProcessGroup& tensor, device::Device& device)
    : wanted_(options.use == Use::training && options.record == RecordSteps::yes),
      tensor_(tensor),
      cache_(wanted_ && device.can_record() ? std::make_unique<RecordedSections>(device) : nullptr),
      breaks_(cache_ ? outside_recordings(tensor, *cache_) : nullptr) {}

Engine::Recorded Graphs::recorded() const {
  if (!cache_) return {};
  return {cache_->recorded(), cache_->pieces(), cache_->issued(), cache_->bytes()};
}

}  // namespace trireme::engine
