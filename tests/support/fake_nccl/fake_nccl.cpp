// SPDX-License-Identifier: Apache-2.0
#include "support/fake_nccl/fake_nccl.hpp"

#include "support/fake_nccl/fake_comm.hpp"
#include "support/fake_nccl/fake_slots.hpp"
#include "support/simulated_gpu/device.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

namespace trireme::testing {

std::array<FakeNccl*, fake_slots> fakes{};

using comm::nccl::Comm;
using comm::nccl::Result;
using comm::nccl::UniqueId;
using device::DType;

namespace {

constexpr int hello_tag = 0;
int members_tag(std::int32_t number) {
  return 1 + number;
}

/// A hello: how many are awaited (goodbye: -1), the meeting's number, the own place.
enum HelloWord : std::size_t { hello_ranks, hello_number, hello_rank, hello_words };
constexpr std::int32_t goodbye = -1;

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
    : slot_(
          static_cast<std::size_t>(std::find(fakes.begin(), fakes.end(), nullptr) - fakes.begin())),
      hellos_(std::move(hellos)),
      data_(std::move(data)) {
  fakes.at(slot_) = this;
  for (int rank = 0; rank < size(); ++rank) {
    ears_.push_back(std::make_unique<Ear>());
    if (rank != self()) await_hello(rank);
  }
}

FakeNccl::~FakeNccl() {
  fakes.at(slot_) = nullptr;
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

void* FakeNccl::allocate(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  const auto whole = (bytes + page - 1) / page * page;
  auto arena = arena_on_device(device::Purpose::gradients, whole);
  auto* const data = arena.allocate(DType::i32, {static_cast<std::int64_t>(whole / 4)}).raw();
  allocations_.emplace(data, std::move(arena));
  return data;
}

void FakeNccl::release(void* data) {
  if (allocations_.erase(data) == 0) throw std::logic_error("NCCL frees what it has not allocated");
}

std::int64_t FakeNccl::offset_in_allocation(const void* data) const {
  for (const auto& [begin, arena] : allocations_) {
    const auto offset = static_cast<const std::byte*>(data) - static_cast<const std::byte*>(begin);
    if (offset >= 0 && offset < static_cast<std::ptrdiff_t>(arena.capacity_bytes())) return offset;
  }
  return -1;
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

}  // namespace trireme::testing
