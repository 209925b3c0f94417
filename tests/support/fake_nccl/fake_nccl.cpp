#include "support/fake_nccl/fake_nccl.hpp"

#include "support/fake_nccl/fake_comm.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

namespace trireme::testing {

using comm::nccl::Api;
using comm::nccl::Comm;
using comm::nccl::Config;
using comm::nccl::DataType;
using comm::nccl::Reduction;
using comm::nccl::Result;
using comm::nccl::UniqueId;
using device::DType;
using Part = FakeComm::Part;

namespace {

/// Functions of C know no object: each table has functions of its own, and its object here.
constexpr std::size_t slots = 8;
std::array<FakeNccl*, slots> objects{};

constexpr int hello_tag = 0;
int members_tag(std::int32_t number) {
  return 1 + number;
}

/// A hello: how many are awaited (goodbye: -1), the meeting's number, the own place.
enum HelloWord : std::size_t { hello_ranks, hello_number, hello_rank, hello_words };
constexpr std::int32_t goodbye = -1;

struct IdWords {
  std::int32_t maker = -1;
  std::int32_t number = -1;
};
IdWords words_of(const UniqueId& id) {
  IdWords words;
  std::memcpy(&words, id.bytes.data(), sizeof words);
  return words;
}

device::Tensor tensor_of_words(std::vector<std::int32_t>& words) {
  return {words.data(), DType::i32, {static_cast<std::int64_t>(words.size())}};
}

}  // namespace

struct FakeNccl::Meeting {
  std::vector<std::int32_t> members;
  std::size_t come = 0;
};
struct FakeNccl::Ear {
  std::vector<std::int32_t> words = std::vector<std::int32_t>(hello_words);
  comm::Work work;
  bool open = false;
};
struct FakeNccl::Letter {
  std::vector<std::int32_t> words;
  comm::Work work;
};

FakeNccl::FakeNccl(std::unique_ptr<comm::ProcessGroup> hellos,
                   std::unique_ptr<comm::ProcessGroup> data)
    : slot_(static_cast<std::size_t>(std::find(objects.begin(), objects.end(), nullptr) -
                                     objects.begin())),
      hellos_(std::move(hellos)),
      data_(std::move(data)) {
  objects.at(slot_) = this;
  for (int rank = 0; rank < size(); ++rank) {
    ears_.push_back(std::make_unique<Ear>());
    if (rank != self()) await_hello(rank);
  }
}

FakeNccl::~FakeNccl() {
  objects.at(slot_) = nullptr;
  if (std::uncaught_exceptions() > 0) return;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == self()) continue;
    std::vector<std::int32_t> words(hello_words, goodbye);
    hellos_->send(tensor_of_words(words), rank, hello_tag);
  }
  for (int rank = 0; rank < size(); ++rank) {
    auto& ear = *ears_[static_cast<std::size_t>(rank)];
    while (ear.open) {
      ear.work.wait();
      listen();
    }
  }
}

void FakeNccl::await_hello(int from) {
  auto& ear = *ears_[static_cast<std::size_t>(from)];
  ear.work = hellos_->start_receive(tensor_of_words(ear.words), from, hello_tag);
  ear.open = true;
}

void FakeNccl::listen() {
  for (int rank = 0; rank < size(); ++rank) {
    auto& ear = *ears_[static_cast<std::size_t>(rank)];
    while (ear.open && ear.work.done()) {
      ear.open = false;
      const auto words = ear.words;
      if (words[hello_ranks] == goodbye) break;
      await_hello(rank);
      hear(rank, words);
    }
  }
  std::erase_if(letters_, [](const auto& letter) { return letter->work.done(); });
}

void FakeNccl::hear(int from, const std::vector<std::int32_t>& hello) {
  auto& meeting = meetings_[hello[hello_number]];
  meeting.members.resize(static_cast<std::size_t>(hello[hello_ranks]), -1);
  meeting.members.at(static_cast<std::size_t>(hello[hello_rank])) = from;
  if (++meeting.come < meeting.members.size()) return;
  for (const auto member : meeting.members) {
    if (member == self()) continue;
    auto letter = std::make_unique<Letter>();
    letter->words = meeting.members;
    letter->work =
        data_->start_send(tensor_of_words(letter->words), member, members_tag(hello[hello_number]));
    letters_.push_back(std::move(letter));
  }
}

Result FakeNccl::make_id(UniqueId* id) {
  const IdWords words{self(), ids_made++};
  std::memcpy(id->bytes.data(), &words, sizeof words);
  return Result::success;
}

FakeComm* FakeNccl::add(std::shared_ptr<FakeComm> comm) {
  auto* const raw = comm.get();
  comms_[raw] = std::move(comm);
  return raw;
}

std::shared_ptr<FakeComm> FakeNccl::find(Comm* comm) const {
  const auto found = comms_.find(reinterpret_cast<FakeComm*>(comm));
  if (found == comms_.end()) throw std::logic_error("NCCL is given a communicator that has ended");
  return found->second;
}

void FakeNccl::remove(FakeComm& comm) {
  comms_.erase(&comm);
}

FakeComm* FakeNccl::begin_comm(int ranks, int rank, const UniqueId& id) {
  const auto words = words_of(id);
  if (words.maker < 0 || words.maker >= size()) throw std::logic_error("that is no id");
  const auto number = (static_cast<std::uint64_t>(words.maker) << 32U) +
                      static_cast<std::uint64_t>(words.number) + 1;
  const auto comm = std::make_shared<FakeComm>(*this, number);
  const std::vector<std::int32_t> hello{ranks, words.number, rank};
  auto answer = std::make_shared<Letter>();
  if (words.maker == self()) {
    hear(self(), hello);
  } else {
    auto letter = std::make_unique<Letter>();
    letter->words = hello;
    letter->work = hellos_->start_send(tensor_of_words(letter->words), words.maker, hello_tag);
    letters_.push_back(std::move(letter));
    answer->words.resize(static_cast<std::size_t>(ranks));
    answer->work = data_->start_receive(tensor_of_words(answer->words), words.maker,
                                        members_tag(words.number));
  }
  comm->begin("the making of a communicator", [this, made = comm.get(), answer, words, rank] {
    if (faults.never_meets) return false;
    if (words.maker == self()) {
      const auto& meeting = meetings_[words.number];
      if (meeting.come < meeting.members.size()) return false;
      made->settle(meeting.members, rank);
    } else {
      if (!answer->work.done()) return false;
      made->settle(answer->words, rank);
    }
    return true;
  });
  return add(comm);
}

FakeComm* FakeNccl::split(FakeComm& parent, int color, int key) {
  struct Choice {
    std::int32_t color;
    std::int32_t key;
  };
  const Choice own{color, key};
  const auto answers =
      std::make_shared<std::vector<FakeTransfer>>(parent.exchange(&own, sizeof own));
  const auto child = std::make_shared<FakeComm>(
      *this, parent.id() * 1000003U + static_cast<std::uint64_t>(color + 2));
  const auto told = [this, answers] {
    return !faults.never_splits && std::all_of(answers->begin(), answers->end(),
                                               [](const auto& one) { return one.work.done(); });
  };
  parent.begin("ncclCommSplit", told);
  child->begin("ncclCommSplit", [told, answers, color, self = child.get(), &parent] {
    if (!told()) return false;
    std::vector<std::pair<int, int>> members;
    for (std::size_t position = 0; position < parent.members().size(); ++position) {
      Choice choice{};
      std::memcpy(&choice, (*answers)[position].bytes.data(), sizeof choice);
      if (choice.color == color) members.emplace_back(choice.key, parent.members()[position]);
    }
    std::sort(members.begin(), members.end());
    std::vector<int> ranks;
    int mine = -1;
    for (const auto& [position, member] : members) {
      if (member == parent.members()[static_cast<std::size_t>(parent.rank())]) {
        mine = static_cast<int>(ranks.size());
      }
      ranks.push_back(member);
    }
    self->settle(std::move(ranks), mine);
    return true;
  });
  return color == comm::nccl::no_color ? nullptr : add(child);
}

/// The functions of a table.
template <std::size_t slot>
struct FakeCalls {
  static FakeNccl* current() { return objects.at(slot); }
  static bool refuses(const char* call) { return current()->faults.refused_call == call; }
  static Result refusal() { return current()->faults.refusal; }
  static Comm* raw(FakeComm* comm) { return reinterpret_cast<Comm*>(comm); }

  static Result version(int* version) {
    *version = 22899;
    return Result::success;
  }
  static Result unique_id(UniqueId* id) {
    return refuses("ncclGetUniqueId") ? refusal() : current()->make_id(id);
  }
  static Result init(Comm** comm, int ranks, UniqueId id, int rank, Config* config) {
    if (config->blocking != 0) throw std::logic_error("a communicator whose calls block");
    if (refuses("ncclCommInitRankConfig")) return refusal();
    *comm = raw(current()->begin_comm(ranks, rank, id));
    return Result::in_progress;
  }
  static Result init_scalable(Comm** comm, int ranks, int rank, int ids, UniqueId* all,
                              Config* config) {
    for (int id = 0; id < ids; ++id) {
      if (words_of(all[id]).maker < 0) throw std::logic_error("one of several ids is none");
    }
    current()->ids_taken = ids;
    return init(comm, ranks, all[0], rank, config);
  }
  static Result split(Comm* comm, int color, int key, Comm** part, Config* config) {
    if (config->blocking != 0) throw std::logic_error("a part whose calls block");
    if (refuses("ncclCommSplit")) return refusal();
    *part = raw(current()->split(*current()->find(comm), color, key));
    return Result::in_progress;
  }
  static Result finalize(Comm* comm) {
    current()->find(comm)->begin("ncclCommFinalize", nullptr);
    return Result::in_progress;
  }
  static Result destroy(Comm* comm) {
    current()->remove(*current()->find(comm));
    ++current()->ended_in_order;
    return Result::success;
  }
  static Result abort(Comm* comm) {
    const auto found = current()->find(comm);
    found->abort();
    current()->remove(*found);
    ++current()->aborted;
    return Result::success;
  }
  static Result async_error(Comm* comm, Result* error) {
    current()->listen();
    *error = current()->find(comm)->look();
    return Result::success;
  }
  static const char* error_string(Result result) {
    return result == Result::remote_error ? "remote process exited or there was a network error"
                                          : "internal error";
  }
  static const char* last_error(Comm*) { return "told by the stand-in"; }

  /// Messages since the group's start.
  struct Grouped {
    bool open = false;
    std::vector<Part> parts;
    Comm* comm = nullptr;
    void* stream = nullptr;
  };
  static Grouped& grouped() {
    static Grouped calls;
    return calls;
  }
  static Result group_start() {
    grouped() = {};
    grouped().open = true;
    return Result::success;
  }
  static Result group_end() {
    auto calls = std::exchange(grouped(), {});
    if (!calls.open) throw std::logic_error("ncclGroupEnd without a start");
    return calls.parts.empty()
               ? Result::success
               : issue("ncclGroupEnd", std::move(calls.parts), calls.comm, calls.stream);
  }
  static Result issue(const char* call, std::vector<Part> parts, Comm* comm, void* stream) {
    if (refuses(call)) return refusal();
    current()->find(comm)->issue(call, std::move(parts), stream);
    return Result::in_progress;
  }
  static Result message(const char* call, const Part& part, Comm* comm, void* stream) {
    if (!grouped().open) return issue(call, {part}, comm, stream);
    grouped().parts.push_back(part);
    grouped().comm = comm;
    grouped().stream = stream;
    return Result::success;
  }
  static std::int64_t elements(std::size_t count) { return static_cast<std::int64_t>(count); }

  static Result all_reduce(const void* from, void* to, std::size_t count, DataType type,
                           Reduction op, Comm* comm, void* stream) {
    return issue("ncclAllReduce",
                 {{Part::Kind::all_reduce, from, to, elements(count), type, op, 0}}, comm, stream);
  }
  static Result reduce_scatter(const void* from, void* to, std::size_t count, DataType type,
                               Reduction op, Comm* comm, void* stream) {
    const auto all = elements(count) * current()->find(comm)->size();
    return issue("ncclReduceScatter", {{Part::Kind::reduce_scatter, from, to, all, type, op, 0}},
                 comm, stream);
  }
  static Result all_gather(const void* from, void* to, std::size_t count, DataType type, Comm* comm,
                           void* stream) {
    return issue("ncclAllGather",
                 {{Part::Kind::all_gather, from, to, elements(count), type, Reduction::sum, 0}},
                 comm, stream);
  }
  static Result broadcast(const void* from, void* to, std::size_t count, DataType type, int root,
                          Comm* comm, void* stream) {
    return issue("ncclBroadcast",
                 {{Part::Kind::broadcast, from, to, elements(count), type, Reduction::sum, root}},
                 comm, stream);
  }
  static Result send(const void* from, std::size_t count, DataType type, int peer, Comm* comm,
                     void* stream) {
    return message("ncclSend",
                   {Part::Kind::send, from, nullptr, elements(count), type, Reduction::sum, peer},
                   comm, stream);
  }
  static Result receive(void* to, std::size_t count, DataType type, int peer, Comm* comm,
                        void* stream) {
    return message("ncclRecv",
                   {Part::Kind::receive, nullptr, to, elements(count), type, Reduction::sum, peer},
                   comm, stream);
  }
};

namespace {

template <std::size_t slot>
Api table() {
  using C = FakeCalls<slot>;
  Api api;
  api.get_version = C::version;
  api.get_unique_id = C::unique_id;
  api.init_rank = C::init;
  api.init_rank_scalable = C::init_scalable;
  api.split = C::split;
  api.finalize = C::finalize;
  api.destroy = C::destroy;
  api.abort = C::abort;
  api.get_async_error = C::async_error;
  api.get_error_string = C::error_string;
  api.get_last_error = C::last_error;
  api.group_start = C::group_start;
  api.group_end = C::group_end;
  api.all_reduce = C::all_reduce;
  api.reduce_scatter = C::reduce_scatter;
  api.all_gather = C::all_gather;
  api.broadcast = C::broadcast;
  api.send = C::send;
  api.receive = C::receive;
  return api;
}

template <std::size_t... all>
std::array<Api, slots> tables(std::index_sequence<all...>) {
  return {table<all>()...};
}

}  // namespace

comm::NcclLibrary FakeNccl::library() const {
  static const auto all = tables(std::make_index_sequence<slots>{});
  return {&all.at(slot_), 22899, "a stand-in"};
}

}  // namespace trireme::testing
