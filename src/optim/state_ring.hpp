// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/optim/state.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace trireme::optim {

/// Masters and states of elements on their way from homes in host memory through the device's and
/// back. Chunks take the slots of a ring in turn: while the device works on one, those behind it
/// are fetched and the one before is stored.
class StateRing {
 public:
  /// A run of elements whose state is in the device's memory.
  struct Run {
    Segment segment;
    device::Tensor master;  // f32
    std::vector<device::Tensor> states;
  };
  using Act = std::function<void(const Run&)>;

  /// `state`, whose memory is that of `offload`, of `elements`, outlives it. Slots are of `arena`.
  StateRing(const OptimizerState& state, std::int64_t elements, const StateOffload& offload,
            device::Arena& arena);

  /// Acts on all elements once, in the order of their state. Work that act issues on the device may
  /// write master and states.
  void update(const Act& act) { pass(Pass::update, act); }
  /// The same with masters alone, which nobody writes.
  void read_masters(const Act& act) { pass(Pass::masters, act); }
  /// Optimizer::read() of values at home.
  void read(const device::Tensor& home, const std::function<void(const device::Tensor&)>& act);
  bool is_home(const device::Tensor& values) const { return offload_.tier.is_home(values.raw()); }

 private:
  enum class Pass { update, masters };
  /// Chunks under way: one comes, one is worked on, one goes.
  static constexpr std::size_t slot_count = 3;

  /// Elements of consecutive state.
  struct Chunk {
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::vector<Segment> segments;  // the parts of them that lie in it
  };
  /// Room for a chunk.
  struct Slot {
    std::vector<device::Tensor> columns;  // f32 [elements of a chunk], as homes_
    device::Event fetched;
    device::Event free;
  };

  void cut(std::int64_t elements);
  void pass(Pass pass, const Act& act);
  std::vector<device::Guest> guests(const Slot& slot, const Chunk& chunk, Pass pass) const;
  Run run_of(const Slot& slot, const Chunk& chunk, const Segment& segment, Pass pass) const;

  const OptimizerState& state_;
  StateOffload offload_;
  std::vector<device::Tensor> homes_;  // f32 [elements]: masters, if they have memory, and states
  std::int64_t chunk_elements_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<Slot> slots_;
};

}  // namespace trireme::optim
