// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/core/operation.hpp"
#include "comm/shm/channel.hpp"
#include "comm/shm/streaming_copy.hpp"

#include <vector>

namespace trireme::comm {

/// Division of a collective's data, and the treatment of received pieces. Every collective is a
/// scatter, a gather, or a scatter whose results are gathered.
struct SharedPlan {
  enum class Kind : std::uint64_t {
    all_reduce = 1,
    small_all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    broadcast,
    barrier
  };
  enum class Arrival {
    reduce,  ///< pieces of the scatter are added up into `out`
    place    ///< pieces are put where their source's part belongs in `out`
  };

  Kind kind = Kind::barrier;
  device::DType dtype = device::DType::f32;
  ReduceOp op = ReduceOp::sum;
  std::size_t total_bytes = 0;
  /// Stores into slots, where peers read the data next, and from slots into arrays.
  Storing into_slots = Storing::ordinary;
  Storing into_arrays = Storing::ordinary;

  // Scatter: part q of `from` goes to position q.
  const std::byte* from = nullptr;
  std::byte* out = nullptr;
  Arrival arrival = Arrival::reduce;
  std::uint64_t scatter_rounds = 0;
  std::size_t scatter_piece = 0;

  // Gather: each rank's part of `whole` goes to all.
  std::byte* whole = nullptr;
  std::uint64_t gather_rounds = 0;
  std::size_t gather_piece = 0;

  /// Begins of parts in `from` and `whole`, in bytes; one more than ranks.
  std::vector<std::size_t> begins;

  std::size_t part_bytes(int position) const {
    const auto index = static_cast<std::size_t>(position);
    return begins[index + 1] - begins[index];
  }
};

/// One collective over a SharedChannel. Polling and waiting do this rank's share of the work.
class SharedOperation final : public PendingOperation {
 public:
  /// First rounds of this operation on the group's channel.
  struct Rounds {
    std::uint64_t scatter;
    std::uint64_t gather;
  };
  SharedOperation(ProgressEngine& progress, const OperationLabel& label, SharedChannel& channel,
                  SharedPlan plan, Rounds first);

  bool advance() override;
  std::vector<base::Rank> missing() const override;
  bool wakes_waiter() const override { return true; }

 private:
  bool step();
  bool send_scatter();
  bool take_scatter();
  bool send_gather();
  bool take_gather();
  void combine_small(std::uint64_t round);
  void tell_gather(std::uint64_t round);
  void reduce_pieces(std::uint64_t round, std::size_t begin, std::size_t length);
  /// Copies received data to its destination.
  void put(std::byte* to, const std::byte* from, std::size_t count) const;
  void sign(Phase phase, std::uint64_t round);
  void check_signatures(Phase phase, std::uint64_t round) const;
  Signature own_signature() const;
  /// Bytes of a part that the piece which begins at `begin` holds.
  std::size_t length_at(int position, std::size_t begin, std::size_t piece) const;

  SharedChannel& channel_;
  SharedPlan plan_;
  Rounds first_;
  std::uint64_t scatter_sent_ = 0;
  std::uint64_t scatter_taken_ = 0;
  std::uint64_t gather_sent_ = 0;
  std::uint64_t gather_taken_ = 0;
  /// Inputs of a reduction, by position.
  std::vector<const void*> inputs_;
};

}  // namespace trireme::comm
