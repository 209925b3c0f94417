#include "checkpoint/exchange.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/peer_error.hpp"

#include "checkpoint/wire.hpp"

namespace trireme::checkpoint {
namespace {

layout::Shape read_shape(WireReader& reader, std::size_t rank) {
  layout::Shape shape(rank);
  for (auto& length : shape) length = reader.signed_number();
  return shape;
}

}  // namespace

void agree(comm::ProcessGroup& group, const std::optional<base::Failure>& failure) {
  WireWriter writer;
  if (failure) {
    writer.put(static_cast<std::uint64_t>(failure->code));
    writer.put(failure->text);
  }
  const auto all = comm::all_gather_bytes(group, writer.bytes());
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
  } catch (const comm::PeerError&) {
    // Peers do not come any more: there is nobody to agree with.
    throw;
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
  for (const auto& bytes : comm::all_gather_bytes(group, writer.bytes())) {
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
