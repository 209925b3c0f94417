// SPDX-License-Identifier: Apache-2.0
#include "replay.hpp"

#include "trireme/base/contract.hpp"

#include "data_stream.hpp"
#include "rank_state.hpp"

#include <algorithm>
#include <optional>
#include <queue>
#include <utility>

namespace trireme::predict {
namespace {

using layout::Action;
using layout::ActionKind;

std::size_t index_of(int number) {
  return static_cast<std::size_t>(number);
}

class Replay {
 public:
  explicit Replay(const ReplayInput& input)
      : input_(input),
        states_(input.ranks.size()),
        streams_(index_of(input.data_groups)),
        teams_(index_of(input.teams)),
        queued_(index_of(input.teams), false) {
    int nodes = 0;
    for (std::size_t rank = 0; rank < input.ranks.size(); ++rank) {
      const auto& simulated = input.ranks[rank];
      streams_[index_of(simulated.data_group)].add_member();
      teams_[index_of(simulated.team)].push_back(rank);
      nodes = std::max(nodes, simulated.node + 1);
    }
    const auto messages =
        2 * index_of(input.schedule.micro_batches * input.schedule.virtual_stages);
    arrivals_.assign(input.ranks.size(), std::vector<Arrival>(messages));
    cores_.assign(index_of(nodes), std::vector<Time>(index_of(input.cores)));
  }

  StepPrediction run() {
    for (std::size_t rank = 0; rank < states_.size(); ++rank) issue_gather(rank);
    for (std::size_t team = 0; team < teams_.size(); ++team) consider(team);
    while (!events_.empty()) {
      const auto event = events_.top();
      events_.pop();
      queued_[event.team] = false;
      for (const auto rank : teams_[event.team]) run_piece(rank, event.at);
      consider(event.team);
      // Ranks of other teams may wait for a collective that all have issued now.
      if (!std::exchange(has_issued_, false)) continue;
      for (std::size_t team = 0; team < teams_.size(); ++team) consider(team);
    }
    return finish();
  }

 private:
  const std::vector<Action>& actions(std::size_t rank) const {
    return input_.schedule.actions[index_of(input_.ranks[rank].stage)];
  }
  const Action& action(std::size_t rank) const { return actions(rank)[states_[rank].action]; }
  bool is_done(std::size_t rank) const { return states_[rank].action == actions(rank).size(); }
  DataStream& stream(std::size_t rank) { return streams_[index_of(input_.ranks[rank].data_group)]; }

  const std::vector<Piece>& pieces(std::size_t rank) const {
    const auto& next = action(rank);
    const auto& plan =
        input_.plans[index_of(input_.ranks[rank].stage)].chunks[index_of(next.virtual_stage)];
    if (next.kind == ActionKind::forward) {
      return next.micro_batch == 0 ? plan.first_forward : plan.forward;
    }
    const bool is_last = next.micro_batch + 1 == input_.schedule.micro_batches;
    if (next.kind == ActionKind::backward_weight) return is_last ? plan.last_weight : plan.weight;
    return is_last ? plan.last_backward : plan.backward;
  }

  std::size_t message_index(ActionKind kind, const Action& of) const {
    const int direction = kind == ActionKind::forward ? 0 : 1;
    return index_of((direction * input_.schedule.virtual_stages + of.virtual_stage) *
                        input_.schedule.micro_batches +
                    of.micro_batch);
  }

  /// Chunk on another stage with which the action exchanges a message; what a stage has is there.
  layout::ChunkPlace neighbour(std::size_t rank, const Action& of, bool later) const {
    if (of.kind == ActionKind::backward_weight) return layout::no_place;
    const layout::ChunkPlace place{input_.ranks[rank].stage, of.virtual_stage};
    const auto placement = input_.schedule.placement();
    const auto found = later ? placement.next(place) : placement.previous(place);
    return found.stage == place.stage ? layout::no_place : found;
  }

  /// Whether the rank's next piece begins with a message.
  bool receives(std::size_t rank) const {
    const auto& next = action(rank);
    return states_[rank].piece == 0 &&
           neighbour(rank, next, next.kind != ActionKind::forward) != layout::no_place;
  }

  /// Gathers that begin with the rank's next piece; null where no units take turns.
  const PlaceTurn* turn(std::size_t rank) const {
    const auto& turns = input_.plans[index_of(input_.ranks[rank].stage)].turns;
    const auto& state = states_[rank];
    return turns.empty() ? nullptr : &turns[state.action][state.piece];
  }

  /// Number of a collective that begins at `at` at the earliest.
  std::size_t issue(std::size_t rank, Time at, Time time) {
    has_issued_ = true;
    const auto number = states_[rank].collectives++;
    stream(rank).issue(number, at, time);
    return number;
  }

  void issue_gather(std::size_t rank) {
    auto& state = states_[rank];
    state.gather.reset();
    if (is_done(rank)) return;
    if (const auto* const place = turn(rank)) {
      if (place->waits) state.gather = state.ahead;
      if (place->own > Time::zero()) state.gather = issue(rank, state.stream, place->own);
      return;
    }
    const auto& piece = pieces(rank)[state.piece];
    if (piece.gather == Time::zero()) return;
    state.gather =
        issue(rank, piece.gather_from_start ? Time::zero() : state.piece_begin, piece.gather);
  }

  /// Nothing while some input of the rank's next piece is not known yet.
  std::optional<Ready> ready(std::size_t rank) {
    const auto& state = states_[rank];
    Ready result{state.stream, Part::bubble, {}};
    const auto& next = action(rank);
    if (receives(rank)) {
      const auto& arrival = arrivals_[rank][message_index(next.kind, next)];
      if (!arrival.at) return std::nullopt;
      if (*arrival.at > result.at) result = {*arrival.at, Part::bubble, arrival.took};
    }
    if (state.gather) {
      const auto end = stream(rank).end_of(*state.gather);
      if (!end) return std::nullopt;
      if (*end > result.at) result = {*end, Part::data, {}};
    }
    return result;
  }

  /// Queues the team's next pieces if all its ranks can begin.
  void consider(std::size_t team) {
    if (queued_[team] || is_done(teams_[team].front())) return;
    Time at{};
    for (const auto rank : teams_[team]) {
      const auto next = ready(rank);
      if (!next) return;
      at = std::max(at, next->at);
    }
    queued_[team] = true;
    events_.push({at, states_[teams_[team].front()].run, team});
  }

  Time on_core(std::size_t rank, Time at) const {
    const auto& free = cores_[index_of(input_.ranks[rank].node)];
    return free.empty() ? at : std::max(at, *std::min_element(free.begin(), free.end()));
  }

  void run_piece(std::size_t rank, Time at) {
    auto& state = states_[rank];
    const auto begin = on_core(rank, at);
    account_wait(state, *ready(rank), begin);
    const auto& piece = pieces(rank)[state.piece];
    // A program that waits for messages issues nothing meanwhile.
    if (!input_.overlaps_messages && receives(rank)) state.host = std::max(state.host, begin);
    auto end = std::max(begin + piece.work.busy(), state.host + piece.work.lag);
    end += input_.lost_beside(stream(rank).overlap(begin, end, state.past));
    input_.recorder.ran(rank, action(rank), begin, end, piece.work.tensor);
    state.host += piece.work.issue;
    state.parts[Part::tensor] += piece.work.tensor;
    state.parts[Part::compute] += end - begin - piece.work.tensor;
    state.stream = end;
    state.piece_begin = begin;
    ++state.run;
    occupy_core(rank, end);
    if (const auto* const unit = turn(rank); unit != nullptr && unit->ahead > Time::zero()) {
      state.ahead = issue(rank, begin, unit->ahead);
    }
    if (piece.reduce > Time::zero()) issue(rank, end, piece.reduce);
    advance(rank);
  }

  /// The core that is free first has run the piece.
  void occupy_core(std::size_t rank, Time end) {
    auto& free = cores_[index_of(input_.ranks[rank].node)];
    if (!free.empty()) *std::min_element(free.begin(), free.end()) = end;
  }

  /// End of work that can begin at `at`, and does when a core is free.
  Time end_on_core(std::size_t rank, Time at, Time work) {
    if (work == Time::zero()) return at;
    const auto end = on_core(rank, at) + work;
    occupy_core(rank, end);
    return end;
  }

  void advance(std::size_t rank) {
    auto& state = states_[rank];
    if (++state.piece == pieces(rank).size()) {
      send(rank, action(rank));
      state.piece = 0;
      ++state.action;
    }
    issue_gather(rank);
  }

  /// Sends what the action has made, to the chunk that goes on with it.
  void send(std::size_t rank, const Action& done) {
    auto& state = states_[rank];
    const auto& simulated = input_.ranks[rank];
    const bool is_forward = done.kind == ActionKind::forward;
    const auto to = neighbour(rank, done, is_forward);
    if (to == layout::no_place) return;
    // On its way up again a V's forward goes to the stage before.
    const bool is_v = input_.schedule.placement().kind == layout::PlacementKind::v_shaped;
    const bool to_after = is_v ? to.stage > simulated.stage : is_forward;
    const auto receiver = index_of(to_after ? simulated.after : simulated.before);
    const auto took = input_.message(simulated.rank, input_.ranks[receiver].rank);
    auto& link = to_after ? state.link_after : state.link_before;
    link = std::max(link, state.stream) + took;
    input_.recorder.sent(rank, done, link - took, link);
    if (!input_.overlaps_messages) {
      state.parts[Part::pipeline] += link - state.stream;
      state.stream = link;
    }
    const Action received{done.kind, done.micro_batch, to.virtual_stage};
    arrivals_[receiver][message_index(done.kind, received)] = {link, took};
    consider(index_of(input_.ranks[receiver].team));
  }

  StepPrediction finish() {
    Time all{};
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
      TRIREME_ENSURE(is_done(rank), "the schedule's lists finish");
      auto& state = states_[rank];
      const auto summed = std::max(state.stream, stream(rank).free());
      const auto reduced = end_on_core(rank, summed, end_of(rank).reduce);
      input_.recorder.summed(rank, reduced - end_of(rank).reduce, reduced);
      state.parts[Part::data] += reduced - state.stream;
      state.stream = reduced;
      all = std::max(all, reduced);
    }
    std::size_t busiest = 0;
    Time last{};
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
      auto& parts = states_[rank].parts;
      const auto& end = end_of(rank);
      const auto begin = all + end.norm;
      const auto updated = end_on_core(rank, begin, end.update);
      const auto gathered = end_on_core(rank, updated, end.gather);
      input_.recorder.ended(rank, stream(rank), {all, begin, updated, gathered}, end.update);
      parts[Part::bubble] += all - states_[rank].stream + updated - end.update - begin;
      parts[Part::data] += end.norm + gathered - updated;
      parts[Part::optimizer] += end.update;
      last = std::max(last, parts.total());
      if (parts[Part::compute] > states_[busiest].parts[Part::compute]) busiest = rank;
    }
    StepPrediction prediction{states_[busiest].parts, input_.ranks[busiest].stage,
                              states_.front().parts};
    for (auto* parts : {&prediction.parts, &prediction.of_first_rank}) {
      (*parts)[Part::bubble] += last - parts->total();
    }
    return prediction;
  }

  const StepEnd& end_of(std::size_t rank) const {
    return input_.plans[index_of(input_.ranks[rank].stage)].end;
  }

  const ReplayInput& input_;
  std::vector<RankState> states_;
  std::vector<DataStream> streams_;              // [data group]
  std::vector<std::vector<std::size_t>> teams_;  // [team]: ranks
  std::vector<bool> queued_;                     // [team]
  std::vector<std::vector<Arrival>> arrivals_;   // [rank][message]
  std::vector<std::vector<Time>> cores_;         // [node][core]: when it is free
  std::priority_queue<PieceBegin> events_;
  bool has_issued_ = false;
};

}  // namespace

StepPrediction replay(const ReplayInput& input) {
  return Replay(input).run();
}

}  // namespace trireme::predict
