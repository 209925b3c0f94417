#pragma once

#include "trireme/base/file.hpp"

#include "board.hpp"
#include "mpi_calls.hpp"
#include "world.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trireme::comm {

/// TCP connections from one rank of each node to rank 0 that say next to nothing: the system closes
/// its end when a process dies, whatever it was doing, so that the death of a whole node's ranks is
/// noticed at once. Deaths of single ranks are seen by their neighbours.
class Lifelines {
 public:
  /// Collective over the world. Null where this rank holds no line.
  static std::unique_ptr<Lifelines> create(const World& world, MPI_Comm control);

  /// A verdict that came over a line, or of a rank whose line broke without a word a moment ago.
  std::optional<Board::Verdict> lost_peer();
  /// Whether a line broke because the other node does not answer: whose fault that is, others know.
  bool is_silent() const;
  /// Tells the other ends why this one is about to break. Does not wait.
  void announce(const Board::Verdict& verdict);
  /// The end of this rank is in order.
  void leave();

 private:
  using Clock = std::chrono::steady_clock;
  struct Line {
    base::File socket;
    base::Rank peer;
    std::string received;
    std::optional<Clock::time_point> broken_since;
    bool has_left = false;
    /// It broke because the other system does not answer.
    bool is_silent = false;

    Line(base::File file, base::Rank other) : socket(std::move(file)), peer(other) {}
  };

  explicit Lifelines(const World& world) : world_(world) {}
  void connect_all(MPI_Comm control);
  /// Collective over the world: a line that one end alone believes in is none, or the other end's
  /// going would look like a death.
  void keep_common(MPI_Comm control);
  void read(Line& line);
  std::optional<Board::Verdict> verdict_of(const Line& line) const;
  void send(std::string_view bytes) const;

  const World& world_;
  std::vector<Line> lines_;
};

}  // namespace trireme::comm
