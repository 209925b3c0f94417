#pragma once

#include "operation.hpp"
#include "shared_lanes.hpp"
#include "streaming_copy.hpp"

#include <optional>
#include <vector>

namespace trireme::comm {

/// How a collective cuts its data and what it does with what comes. Every collective is an
/// exchange, a spread, or an exchange whose results are spread.
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
    reduce,  ///< pieces of the exchange are added up into `out`
    place    ///< and here are put where their source's part belongs in `out`
  };

  Kind kind = Kind::barrier;
  device::DType dtype = device::DType::f32;
  ReduceOp op = ReduceOp::sum;
  std::size_t total_bytes = 0;
  /// How data get into slots, where peers read them next, and from slots into arrays.
  Storing into_slots = Storing::ordinary;
  Storing into_arrays = Storing::ordinary;

  // Exchange: part q of `from` goes to position q.
  const std::byte* from = nullptr;
  std::byte* out = nullptr;
  Arrival arrival = Arrival::reduce;
  std::uint64_t exchange_rounds = 0;
  std::size_t exchange_piece = 0;

  // Spread: everybody's part of `whole` goes to all.
  std::byte* whole = nullptr;
  std::uint64_t spread_rounds = 0;
  std::size_t spread_piece = 0;

  /// Where parts begin in `from` and `whole`, in bytes; one more than ranks.
  std::vector<std::size_t> begins;

  std::size_t part_bytes(int position) const {
    const auto index = static_cast<std::size_t>(position);
    return begins[index + 1] - begins[index];
  }
};

/// One collective over SharedLanes. Whoever polls or waits does this rank's share.
class SharedOperation final : public PendingOperation {
 public:
  /// First rounds of this operation on the group's lanes.
  struct Rounds {
    std::uint64_t exchange;
    std::uint64_t spread;
  };
  SharedOperation(Progress& progress, const OperationLabel& label, SharedLanes& lanes,
                  SharedPlan plan, Rounds first);

  bool advance() override;
  std::vector<base::Rank> missing() const override;
  bool rings() const override { return true; }

 private:
  bool step();
  bool send_exchange();
  bool take_exchange();
  bool send_spread();
  bool take_spread();
  void combine_small(std::uint64_t round);
  void tell_spread(std::uint64_t round);
  void reduce_pieces(std::uint64_t round, std::size_t begin, std::size_t length);
  /// Puts what came to its place.
  void put(std::byte* to, const std::byte* from, std::size_t count) const;
  void sign(Lane lane, std::uint64_t round);
  void check_signatures(Lane lane, std::uint64_t round) const;
  Signature own_signature() const;
  /// How much of a part the piece that begins at `begin` holds.
  std::size_t length_at(int position, std::size_t begin, std::size_t piece) const;

  SharedLanes& lanes_;
  SharedPlan plan_;
  Rounds first_;
  std::uint64_t exchange_sent_ = 0;
  std::uint64_t exchange_taken_ = 0;
  std::uint64_t spread_sent_ = 0;
  std::uint64_t spread_taken_ = 0;
  /// Room for what a reduction adds up.
  std::vector<const void*> inputs_;
};

}  // namespace trireme::comm
