#include "exchange.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>
#include <set>

namespace trireme::comm {
namespace {

/// MPI counts in int; also the unit in which a long message makes progress.
constexpr std::size_t piece_bytes = std::size_t{1} << 30;
constexpr std::size_t flight_limit = 32;

/// A message of no bytes is a message too.
std::size_t piece_count(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + piece_bytes - 1) / piece_bytes);
}

std::size_t piece_length(std::size_t bytes, std::size_t piece) {
  return std::min(piece_bytes, bytes - piece * piece_bytes);
}

}  // namespace

Exchange::~Exchange() {
  for (auto& flight : flights_) {
    const bool pending = flight.request != MPI_REQUEST_NULL;
    if (pending && flight.direction == Direction::receive) mpi::cancel_receive(flight.request);
  }
}

void Exchange::start(const ExchangeStep& step) {
  if (step.from >= 0) {
    for (std::size_t piece = 0; piece < piece_count(step.receive.size()); ++piece) {
      const auto length = static_cast<int>(piece_length(step.receive.size(), piece));
      auto* const to = step.receive.data() + piece * piece_bytes;
      flights_.push_back({mpi::ireceive(to, length, step.from, tag_, communicator_), step.from,
                          length, Direction::receive});
    }
  }
  if (step.to >= 0) {
    for (std::size_t piece = 0; piece < piece_count(step.send.size()); ++piece) {
      const auto length = static_cast<int>(piece_length(step.send.size(), piece));
      const auto* const from = step.send.data() + piece * piece_bytes;
      flights_.push_back({mpi::isend(from, length, step.to, tag_, communicator_), step.to, length,
                          Direction::send});
    }
  }
}

/// Nulls the request when complete.
void Exchange::complete(Flight& flight) const {
  int received = flight.bytes;
  const bool receives = flight.direction == Direction::receive;
  if (!mpi::test(flight.request, receives ? &received : nullptr) || received == flight.bytes) {
    return;
  }
  throw base::Error(
      base::ExitCode::internal,
      base::format("{} bytes came from position {} of the process group where {} were due "
                   "(ranks call different operations or sizes); this is a defect of Trireme, "
                   "please report it",
                   received, flight.peer, flight.bytes));
}

bool Exchange::advance() {
  bool moved = false;
  while (next_ < steps_.size() && flights_.size() < flight_limit) {
    start(steps_[next_++]);
    moved = true;
  }
  const auto before = flights_.size();
  for (auto& flight : flights_) complete(flight);
  std::erase_if(flights_, [](const Flight& flight) { return flight.request == MPI_REQUEST_NULL; });
  return moved || flights_.size() != before;
}

std::vector<int> Exchange::missing() const {
  std::set<int> absent;
  for (const auto& flight : flights_) {
    if (flight.direction == Direction::receive) absent.insert(flight.peer);
  }
  for (auto step = next_; step < steps_.size(); ++step) {
    if (steps_[step].from >= 0) absent.insert(steps_[step].from);
  }
  if (absent.empty()) {
    for (const auto& flight : flights_) absent.insert(flight.peer);
  }
  return {absent.begin(), absent.end()};
}

}  // namespace trireme::comm
