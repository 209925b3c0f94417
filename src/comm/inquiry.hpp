#pragma once

#include "blame.hpp"
#include "mpi_calls.hpp"
#include "world.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace trireme::comm {

/// Questions about missing ranks, and answers to those of others, over MPI messages that both sides
/// handle while they wait.
class Inquiry {
 public:
  /// Of a rank of this node, this one among them.
  using Look = std::function<Sighting(base::Rank)>;

  Inquiry(const World& world, MPI_Comm control, Look look);

  /// Answers what others have asked; to be called now and then in every wait.
  void answer();

  /// Asks about ranks that this one waits for in `operation`, then about those that they wait for,
  /// and so on.
  void begin(const std::vector<base::Rank>& missing, std::string operation);
  /// Takes answers; whether nothing more can be learned.
  bool settled();
  Blame conclude() const;

 private:
  struct Letter;
  struct Outgoing {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  template <typename T>
  void send(const T& letter, int to, int tag);
  void ask(base::Rank subject);
  void learn(base::Rank subject, const Sighting& sighting);
  void take_answers();
  std::vector<base::Rank> suspects() const;
  /// Of those that all wait for each other.
  std::vector<base::Rank> suspects_in_a_circle() const;
  /// Leaders of the nodes of which nobody has answered.
  std::vector<int> silent_nodes() const;
  Blame blame_of(std::vector<base::Rank> ranks) const;
  /// Where the missing nodes are the larger part, this part is what is cut off.
  bool is_cut_off(const std::vector<int>& silent) const;
  Blame blame_own_side(const std::vector<int>& silent) const;

  const World& world_;
  MPI_Comm control_;
  Look look_;
  std::list<Outgoing> outgoing_;
  /// Of the inquiry under way.
  std::int32_t number_ = 0;
  std::vector<base::Rank> missing_;
  std::string operation_;
  std::map<base::Rank, Sighting> seen_;
  /// Leaders of nodes that have answered.
  std::set<int> heard_;
};

}  // namespace trireme::comm
