#include "checkpoint/exchange.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/comm/peer_error.hpp"

#include "checkpoint/wire.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::checkpoint {
namespace {

using Words = std::vector<std::int32_t>;

device::Tensor view(Words& words) {
  return {words.data(), device::DType::i32, {static_cast<std::int64_t>(words.size())}};
}

/// A size as two words: collectives move 32-bit numbers.
Words size_words(std::size_t size) {
  Words words(2);
  const auto value = static_cast<std::uint64_t>(size);
  std::memcpy(words.data(), &value, sizeof value);
  return words;
}

std::size_t size_from_words(const std::int32_t* words) {
  std::uint64_t value = 0;
  std::memcpy(&value, words, sizeof value);
  return static_cast<std::size_t>(value);
}

std::size_t words_for(std::size_t bytes) {
  return (bytes + 3) / 4;
}

layout::Shape read_shape(WireReader& reader, std::size_t rank) {
  layout::Shape shape(rank);
  for (auto& length : shape) length = reader.signed_number();
  return shape;
}

}  // namespace

std::vector<std::string> all_gather_bytes(comm::ProcessGroup& group, std::string_view mine) {
  const auto ranks = static_cast<std::size_t>(group.size());
  Words my_size = size_words(mine.size());
  Words sizes(2 * ranks);
  group.all_gather(view(my_size), view(sizes));
  std::size_t most = 1;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    most = std::max(most, words_for(size_from_words(&sizes[2 * rank])));
  }
  Words part(most);
  std::copy(mine.begin(), mine.end(), reinterpret_cast<char*>(part.data()));
  Words whole(most * ranks);
  group.all_gather(view(part), view(whole));
  std::vector<std::string> all(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    all[rank].assign(reinterpret_cast<const char*>(&whole[most * rank]),
                     size_from_words(&sizes[2 * rank]));
  }
  return all;
}

std::string broadcast_bytes(comm::ProcessGroup& group, std::string_view from_first) {
  Words size = size_words(from_first.size());
  group.broadcast(view(size), 0);
  const auto bytes = size_from_words(size.data());
  Words words(std::max<std::size_t>(words_for(bytes), 1));
  if (group.rank() == 0) {
    std::copy(from_first.begin(), from_first.end(), reinterpret_cast<char*>(words.data()));
  }
  group.broadcast(view(words), 0);
  return {reinterpret_cast<const char*>(words.data()), bytes};
}

void agree(comm::ProcessGroup& group, const std::optional<base::Failure>& failure) {
  WireWriter writer;
  if (failure) {
    writer.put(static_cast<std::uint64_t>(failure->code));
    writer.put(failure->text);
  }
  const auto all = all_gather_bytes(group, writer.bytes());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    WireReader reader(all[rank]);
    const auto code = static_cast<base::ExitCode>(reader.number());
    const auto text = reader.text();
    const auto first = group.ranks()[rank];
    const auto where = all.size() == 1 ? "" : base::format("rank {}: ", first.value());
    throw comm::AgreedError({code, where + text}, first, group.size());
  }
}

void together(comm::ProcessGroup& group, const std::function<void()>& work) {
  std::optional<base::Failure> failure;
  try {
    work();
  } catch (const base::Error& error) {
    failure = base::Failure{error.code(), error.what()};
  } catch (const std::exception& error) {
    failure = base::Failure{base::ExitCode::internal, error.what()};
  }
  agree(group, failure);
}

std::vector<std::vector<HeldBox>> exchange_held(comm::ProcessGroup& group,
                                                const std::vector<HeldBox>& mine) {
  WireWriter writer;
  for (const auto& held : mine) {
    writer.put(held.name);
    writer.put(static_cast<std::uint64_t>(held.dtype));
    writer.put(static_cast<std::uint64_t>(held.shape.size()));
    for (const auto* numbers : {&held.shape, &held.box.offset, &held.box.length}) {
      for (const auto number : *numbers) writer.put_signed(number);
    }
  }
  std::vector<std::vector<HeldBox>> all;
  for (const auto& bytes : all_gather_bytes(group, writer.bytes())) {
    auto& of_rank = all.emplace_back();
    for (WireReader reader(bytes); !reader.done();) {
      auto& held = of_rank.emplace_back();
      held.name = reader.text();
      held.dtype = static_cast<device::DType>(reader.number());
      const auto rank = static_cast<std::size_t>(reader.number());
      held.shape = read_shape(reader, rank);
      held.box.offset = read_shape(reader, rank);
      held.box.length = read_shape(reader, rank);
    }
  }
  return all;
}

}  // namespace trireme::checkpoint
