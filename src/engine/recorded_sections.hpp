#pragma once

#include "trireme/device/device.hpp"

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace trireme::engine {

/// Runs parts of a step that issue the same work again and again: at first as they are, which also
/// lets libraries prepare themselves, then once into recordings, and from then on as those.
///
/// A key names everything that such a part depends on: which part it is, and the addresses of the
/// tensors that it is given. What else may differ between two runs of one key lies in those
/// tensors. So a recording never meets other tensors than its own; a part whose addresses keep
/// changing has many keys.
///
/// What no recording can hold, such as a collective, stands between two of them: outside()
/// (docs/decisions/0026).
class RecordedSections {
 public:
  struct Key {
    int section = 0;
    std::vector<const void*> addresses;
    /// A number that kernels are given by value.
    float number = 0;

    auto operator<=>(const Key&) const = default;
  };
  using Act = std::function<void()>;

  /// More recordings than this would cost memory, and are a sign that nothing repeats.
  static constexpr std::size_t most_keys = 128;

  explicit RecordedSections(device::Device& device) : device_(device) {}
  RecordedSections(const RecordedSections&) = delete;
  RecordedSections& operator=(const RecordedSections&) = delete;
  ~RecordedSections() = default;

  /// `body` issues the part's work and does nothing else that would have to be repeated. When the
  /// device cannot record it, all parts run as they are from then on, and a line says why.
  template <typename Body>
  void run(const Key& key, const Body& body) {
    auto* const entry = entry_of(key);
    if (entry == nullptr || !entry->seen) {
      body();
      if (entry != nullptr) entry->seen = true;
      return;
    }
    const bool fresh = entry->pieces.empty();
    const auto taken = fresh ? device_.taken_bytes() : 0;
    if (fresh && !record(*entry, body)) {
      // Nothing of it has been done: neither here nor, where it meets others, by them.
      body();
      return;
    }
    issue(*entry);
    if (fresh) note_growth(taken);
  }

  /// For the body of a part that is being recorded: `act` is done neither now nor by a recording,
  /// but between what has been issued so far and what is issued next, whenever the part is.
  void outside(Act act);
  /// Whether that is so now.
  bool recording() const { return recorded_now_ != nullptr; }

  /// How many parts were recorded, in how many pieces, and how often one was issued.
  std::size_t recorded() const { return recorded_; }
  std::size_t pieces() const { return pieces_; }
  std::size_t issued() const { return issued_; }
  /// What recordings took of the device's memory, as it says itself: beside all arenas, and with
  /// whatever other programs took in those moments.
  std::size_t bytes() const { return bytes_; }
  /// Why nothing is recorded any more; empty while all is well.
  const std::string& reason() const { return reason_; }

 private:
  struct Piece {
    std::unique_ptr<device::Recording> recording;
    /// What follows it; may be empty.
    Act act;
  };
  struct Entry {
    bool seen = false;
    /// Empty until the part has been recorded.
    std::vector<Piece> pieces;
  };
  /// Null when nothing is recorded.
  Entry* entry_of(const Key& key);
  bool record(Entry& entry, const Act& body);
  void issue(const Entry& entry);
  void refuse(const std::string& reason);
  void note_growth(std::size_t taken_before);

  device::Device& device_;
  std::map<Key, Entry> entries_;
  /// The pieces of the part that is being recorded.
  std::vector<Piece>* recorded_now_ = nullptr;
  std::size_t recorded_ = 0;
  std::size_t pieces_ = 0;
  std::size_t issued_ = 0;
  std::size_t bytes_ = 0;
  std::string reason_;
};

}  // namespace trireme::engine
