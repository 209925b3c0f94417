#include "recorded_sections.hpp"

#include "trireme/base/contract.hpp"
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

bool RecordedSections::record(Entry& entry, const Act& body) {
  std::vector<Piece> pieces;
  recorded_now_ = &pieces;
  try {
    device_.begin_recording();
    body();
    pieces.push_back({device_.end_recording(), {}});
    recorded_now_ = nullptr;
  } catch (const base::Error& error) {
    recorded_now_ = nullptr;
    device_.abandon_recording();
    refuse(error.what());
    return false;
  }
  ++recorded_;
  pieces_ += pieces.size();
  entry.pieces = std::move(pieces);
  return true;
}

void RecordedSections::outside(Act act) {
  TRIREME_EXPECT(recording(), "only recordings have an outside");
  recorded_now_->push_back({device_.end_recording(), std::move(act)});
  device_.begin_recording();
}

void RecordedSections::issue(const Entry& entry) {
  for (const auto& piece : entry.pieces) {
    piece.recording->issue();
    if (piece.act) piece.act();
  }
  ++issued_;
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
