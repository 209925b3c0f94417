#include "recorded_sections.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

namespace trireme::engine {

RecordedSections::Entry* RecordedSections::entry_of(const Key& key) {
  if (!reason_.empty()) return nullptr;
  if (const auto found = entries_.find(key); found != entries_.end()) return &found->second;
  if (entries_.size() < most_keys) return &entries_[key];
  refuse(base::format("more than {} different parts: the loss scale or buffers keep changing",
                      most_keys));
  return nullptr;
}

void RecordedSections::note_growth(std::size_t taken_before) {
  // Other programs may give memory back meanwhile.
  const auto taken = device_.taken_bytes();
  if (taken > taken_before) bytes_ += taken - taken_before;
}

void RecordedSections::refuse(const std::string& reason) {
  reason_ = reason;
  // What the device still has to do may come from a recording: they end with this object.
  base::log::local::warning("engine",
                            "micro-batches are issued kernel by kernel, not as CUDA graphs ({}); "
                            "numerics.cuda_graphs = false silences this",
                            reason);
}

}  // namespace trireme::engine
