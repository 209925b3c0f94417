#include "checkpoint/exchange.hpp"

#include "trireme/comm/bytes.hpp"

#include "checkpoint/wire.hpp"

namespace trireme::checkpoint {
namespace {

layout::Shape read_shape(WireReader& reader, std::size_t rank) {
  layout::Shape shape(rank);
  for (auto& length : shape) length = reader.signed_number();
  return shape;
}

}  // namespace

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
