#include "inquiry.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::comm {
namespace {

/// Beside the tags of notices (node_watch.cpp) on the control communicator.
constexpr int question_tag = 32001;
constexpr int answer_tag = 32002;
constexpr std::size_t most_awaited = 8;
/// Of the ranks of a node that are asked about one of them.
constexpr std::size_t most_witnesses = 4;

std::string list_of(const std::vector<std::string>& items) {
  return base::format("{}", base::join(items, ", "));
}

}  // namespace

struct Inquiry::Letter {
  std::int32_t number = 0;
  std::int32_t subject = -1;
  std::int32_t state = 0;
  std::int32_t awaited_count = 0;
  std::array<std::int32_t, most_awaited> awaited{};
  std::array<char, 256> text{};
};

Inquiry::Inquiry(const World& world, MPI_Comm control, Look look)
    : world_(world), control_(control), look_(std::move(look)) {}

template <typename T>
void Inquiry::send(const T& letter, int to, int tag) {
  auto& out = outgoing_.emplace_back();
  out.bytes.resize(sizeof letter);
  std::memcpy(out.bytes.data(), &letter, sizeof letter);
  out.request = mpi::isend(out.bytes.data(), sizeof letter, to, tag, control_);
}

void Inquiry::answer() {
  std::erase_if(outgoing_, [](Outgoing& out) { return mpi::test(out.request, nullptr); });
  while (const auto source = mpi::probe(question_tag, control_)) {
    Letter letter;
    auto request = mpi::ireceive(&letter, sizeof letter, *source, question_tag, control_);
    while (!mpi::test(request, nullptr)) {
    }
    const auto sighting = look_(base::Rank(letter.subject));
    letter.state = static_cast<std::int32_t>(sighting.state);
    const auto count = std::min(sighting.awaited.size(), most_awaited);
    letter.awaited_count = static_cast<std::int32_t>(count);
    for (std::size_t i = 0; i < count; ++i) letter.awaited[i] = sighting.awaited[i].value();
    std::copy_n(sighting.text.begin(), std::min(sighting.text.size(), letter.text.size() - 1),
                letter.text.begin());
    send(letter, *source, answer_tag);
  }
}

void Inquiry::begin(const std::vector<base::Rank>& missing, std::string operation) {
  ++number_;
  missing_ = missing;
  operation_ = std::move(operation);
  seen_.clear();
  heard_ = {world_.leader(world_.self)};
  for (const auto rank : missing_) ask(rank);
  // Whoever reaches nobody is cut off itself.
  for (const int leader : world_.nodes()) {
    if (leader != world_.leader(world_.self)) ask(base::Rank(leader));
  }
}

void Inquiry::ask(base::Rank subject) {
  if (seen_.contains(subject)) return;
  seen_[subject] = {};
  if (world_.is_neighbour(subject)) {
    learn(subject, look_(subject));
    return;
  }
  Letter letter;
  letter.number = number_;
  letter.subject = subject.value();
  auto witnesses = world_.ranks_of(world_.leader(subject));
  // The rank itself, and some that see it from beside.
  std::partition(witnesses.begin(), witnesses.end(),
                 [&](base::Rank rank) { return rank == subject; });
  witnesses.resize(std::min(witnesses.size(), most_witnesses));
  for (const auto witness : witnesses) send(letter, witness.value(), question_tag);
}

void Inquiry::learn(base::Rank subject, const Sighting& sighting) {
  auto& known = seen_[subject];
  // Several witnesses may have looked at different times: who waits now has come since.
  if (sighting.state >= known.state) known = sighting;
  if (sighting.state != Sighting::State::waiting) return;
  for (const auto rank : sighting.awaited) ask(rank);
}

void Inquiry::take_answers() {
  while (const auto source = mpi::probe(answer_tag, control_)) {
    Letter letter;
    auto request = mpi::ireceive(&letter, sizeof letter, *source, answer_tag, control_);
    while (!mpi::test(request, nullptr)) {
    }
    if (letter.number != number_) continue;
    heard_.insert(world_.leaders[static_cast<std::size_t>(*source)]);
    Sighting sighting;
    sighting.state = static_cast<Sighting::State>(letter.state);
    for (int i = 0; i < letter.awaited_count; ++i) {
      sighting.awaited.emplace_back(letter.awaited[static_cast<std::size_t>(i)]);
    }
    sighting.text = {letter.text.data(), ::strnlen(letter.text.data(), letter.text.size())};
    learn(base::Rank(letter.subject), sighting);
  }
}

bool Inquiry::settled() {
  answer();
  take_answers();
  // A rank that computes may come to wait, and one that is silent may speak.
  return std::all_of(seen_.begin(), seen_.end(),
                     [](const auto& one) { return one.second.state >= Sighting::State::waiting; });
}

std::vector<base::Rank> Inquiry::suspects() const {
  // All have come, and the operation does not end all the same: it is this rank's own device.
  if (missing_.empty()) return {world_.self};
  std::vector<base::Rank> found;
  std::set<base::Rank> visited;
  for (auto open = missing_; !open.empty();) {
    const auto rank = open.back();
    open.pop_back();
    const auto seen = seen_.find(rank);
    if (seen == seen_.end() || !visited.insert(rank).second) continue;
    if (seen->second.state == Sighting::State::waiting) {
      open.insert(open.end(), seen->second.awaited.begin(), seen->second.awaited.end());
    } else if (rank != world_.self) {
      found.push_back(rank);
    }
  }
  // What is certain explains more than what is not.
  for (const auto state :
       {Sighting::State::halted, Sighting::State::silent, Sighting::State::computing}) {
    std::vector<base::Rank> alike;
    std::copy_if(found.begin(), found.end(), std::back_inserter(alike),
                 [&](base::Rank rank) { return seen_.at(rank).state == state; });
    if (!alike.empty()) return alike;
  }
  return suspects_in_a_circle();
}

std::vector<base::Rank> Inquiry::suspects_in_a_circle() const {
  // Where an operation cannot tell whom it waits for, all others are missing: those that wait in
  // the same one have come.
  auto elsewhere = missing_;
  std::erase_if(elsewhere, [&](base::Rank rank) {
    const auto seen = seen_.find(rank);
    return seen != seen_.end() && seen->second.text.find(operation_) != std::string::npos;
  });
  return elsewhere.empty() ? missing_ : elsewhere;
}

std::vector<int> Inquiry::silent_nodes() const {
  auto silent = world_.nodes();
  std::erase_if(silent, [&](int leader) { return heard_.contains(leader); });
  return silent;
}

bool Inquiry::is_cut_off(const std::vector<int>& silent) const {
  const auto all = world_.nodes();
  const auto heard = all.size() - silent.size();
  // Of two equal parts, the one with rank 0 counts as the rest: both decide alike.
  return silent.size() > heard || (silent.size() == heard && silent.front() == all.front());
}

Blame Inquiry::blame_of(std::vector<base::Rank> ranks) const {
  std::sort(ranks.begin(), ranks.end());
  Blame blame;
  for (const auto rank : ranks) {
    const auto seen = seen_.find(rank);
    const bool known = seen != seen_.end() && !seen->second.text.empty();
    blame.texts.push_back(known ? seen->second.text : world_.text(rank));
  }
  blame.ranks = std::move(ranks);
  return blame;
}

Blame Inquiry::blame_own_side(const std::vector<int>& silent) const {
  std::vector<base::Rank> ranks;
  std::vector<std::string> here;
  std::vector<std::string> there;
  for (const int leader : world_.nodes()) {
    const bool far = std::find(silent.begin(), silent.end(), leader) != silent.end();
    (far ? there : here).push_back(world_.hosts[static_cast<std::size_t>(leader)]);
    if (far) continue;
    for (const auto rank : world_.ranks_of(leader)) ranks.push_back(rank);
  }
  auto blame = blame_of(std::move(ranks));
  blame.cut_off = base::format("{} {} cut off: no rank of {} answers", list_of(here),
                               here.size() == 1 ? "is" : "are", list_of(there));
  return blame;
}

Blame Inquiry::conclude() const {
  const auto ranks = suspects();
  const auto seen = seen_.find(ranks.front());
  const auto silent = silent_nodes();
  const bool alone = seen == seen_.end() || seen->second.state == Sighting::State::silent;
  if (!alone || silent.empty()) return blame_of(ranks);
  if (is_cut_off(silent)) return blame_own_side(silent);
  // Of a node that says nothing at all, all ranks are missing, and rank by rank all nodes agree.
  std::set<base::Rank> all(ranks.begin(), ranks.end());
  std::vector<std::string> names;
  for (const int leader : silent) {
    const auto of_node = world_.ranks_of(leader);
    const bool suspected = std::any_of(of_node.begin(), of_node.end(),
                                       [&](base::Rank rank) { return all.contains(rank); });
    if (!suspected) continue;
    all.insert(of_node.begin(), of_node.end());
    names.push_back(world_.hosts[static_cast<std::size_t>(leader)]);
  }
  auto blame = blame_of({all.begin(), all.end()});
  if (!names.empty()) {
    blame.cut_off =
        base::format("{} {} down or cut off: none of {} ranks answers", list_of(names),
                     names.size() == 1 ? "is" : "are", names.size() == 1 ? "its" : "their");
  }
  return blame;
}

}  // namespace trireme::comm
