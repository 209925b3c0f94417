#include "lifelines.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "harbour.hpp"
#include "notice.hpp"
#include "tcp_liveness.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace trireme::comm {
namespace {

using std::chrono::milliseconds;

/// Where no network lets them through, the start waits this long once.
constexpr milliseconds patience_at_start{3000};
/// A rank that failed has sent its verdict by other ways; and where the launcher ends all ranks at
/// once, those that go first are not the cause.
constexpr milliseconds moment{500};

constexpr char farewell = 'l';
constexpr char failure = 'f';

/// Collective. On rank 0 its addresses in the networks of the other nodes.
std::vector<Address> towards_peers(const World& world, MPI_Comm control) {
  const bool is_leader = world.leader(world.self) == world.self.value();
  const auto own = is_leader ? own_addresses() : Addresses{};
  std::vector<Address> all(world.self.value() == 0 ? world.hosts.size() * own.size() : 0);
  mpi::library_gather(&own, all.data(), sizeof own, 0, control);
  if (all.empty()) return {};
  all.erase(all.begin(), all.begin() + own.size());
  return towards(own, all);
}

}  // namespace

std::unique_ptr<Lifelines> Lifelines::create(const World& world, MPI_Comm control) {
  if (world.nodes().size() < 2) return nullptr;
  std::unique_ptr<Lifelines> lines(new Lifelines(world));
  lines->connect_all(control);
  return lines->lines_.empty() ? nullptr : std::move(lines);
}

void Lifelines::connect_all(MPI_Comm control) {
  const auto nodes = world_.nodes();
  std::optional<Harbour> harbour;
  Berth berth;
  const auto addresses = towards_peers(world_, control);
  if (world_.self.value() == 0) berth = harbour.emplace(addresses).berth();
  mpi::library_broadcast(&berth, sizeof berth, 0, control);
  if (berth.quay_count == 0) return;
  if (harbour) {
    for (auto& arrival : harbour->await(nodes.size() - 1, patience_at_start)) {
      lines_.push_back({std::move(arrival.socket), base::Rank(arrival.number)});
    }
  } else if (world_.leader(world_.self) == world_.self.value()) {
    auto ship = sail_to(berth, world_.self.value(), patience_at_start);
    if (ship) lines_.push_back({std::move(ship), base::Rank(0)});
  }
  keep_common(control);
  if (harbour && lines_.size() < nodes.size() - 1) {
    base::log::local::warning(
        "comm",
        "{} of {} other nodes have no TCP connection to {} (the death of all ranks of a node is "
        "noticed only after comm.timeout); let nodes reach each other's ports",
        nodes.size() - 1 - lines_.size(), nodes.size() - 1, world_.hosts.front());
  }
}

void Lifelines::keep_common(MPI_Comm control) {
  const auto size = world_.leaders.size();
  const char mine = lines_.empty() ? '\0' : '\1';
  std::vector<char> kept(size);
  mpi::library_gather(&mine, kept.data(), 1, 0, control);
  if (world_.self.value() == 0) {
    std::erase_if(lines_, [&](const Line& line) { return kept[line.peer.index()] == '\0'; });
    std::fill(kept.begin(), kept.end(), '\0');
    for (const auto& line : lines_) kept[line.peer.index()] = '\1';
  }
  mpi::library_broadcast(kept.data(), static_cast<int>(size), 0, control);
  if (world_.self.value() != 0 && kept[world_.self.index()] == '\0') lines_.clear();
}

void Lifelines::read(Line& line) {
  char bytes[1024];
  while (!line.broken_since) {
    const auto count = ::recv(line.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) {
      line.broken_since = Clock::now();
      // A process that ends lets its system say so; a system that is gone says nothing.
      line.is_silent = count < 0 && errno != ECONNRESET && errno != EPIPE;
      return;
    }
    // A peer says one thing in its life.
    if (line.received.size() <= sizeof(Notice)) {
      line.received.append(bytes, static_cast<std::size_t>(count));
    }
    line.has_left = line.has_left || line.received.front() == farewell;
  }
}

std::optional<Board::Verdict> Lifelines::verdict_of(const Line& line) const {
  if (line.received.size() >= 1 + sizeof(Notice) && line.received.front() == failure) {
    Notice notice;
    std::copy_n(line.received.data() + 1, sizeof notice, reinterpret_cast<char*>(&notice));
    return notice.verdict();
  }
  if (line.has_left || !line.broken_since || Clock::now() - *line.broken_since < moment) {
    return std::nullopt;
  }
  const auto& host = world_.hosts[line.peer.index()];
  if (line.is_silent) {
    return Board::Verdict{
        line.peer, host,
        base::format("{} is down or cut off: its system has not answered for {} s (power, cable, "
                     "switch or kernel), seen from {}",
                     host, TcpLiveness::silence_s, world_.hosts[world_.self.index()])};
  }
  return Board::Verdict{
      line.peer, host,
      base::format("{} died without a word, and nobody on {} says why (killed by a signal or by "
                   "the system; perhaps the node died, or its slurmstepd)",
                   world_.text(line.peer), host)};
}

std::optional<Board::Verdict> Lifelines::lost_peer() {
  std::optional<Board::Verdict> found;
  for (auto& line : lines_) {
    read(line);
    auto verdict = verdict_of(line);
    // What somebody says is better than what silence means.
    if (verdict && (!found || line.received.size() > 1)) found = std::move(verdict);
  }
  return found;
}

bool Lifelines::is_silent() const {
  return std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.is_silent; });
}

void Lifelines::send(std::string_view bytes) const {
  for (const auto& line : lines_) {
    // Best effort: so little fits any socket's buffer, and the other end may be gone.
    [[maybe_unused]] const auto sent =
        ::send(line.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

void Lifelines::announce(const Board::Verdict& verdict) {
  const Notice notice(verdict);
  std::string bytes(1, failure);
  bytes.append(reinterpret_cast<const char*>(&notice), sizeof notice);
  send(bytes);
}

void Lifelines::leave() {
  send({&farewell, 1});
}

}  // namespace trireme::comm
