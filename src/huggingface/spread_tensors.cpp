// SPDX-License-Identifier: Apache-2.0
#include "trireme/huggingface/spread_tensors.hpp"

#include "trireme/comm/agree.hpp"
#include "trireme/huggingface/safetensors.hpp"

#include <algorithm>

namespace trireme::huggingface {
namespace {

/// Bytes of a piece on every rank.
constexpr std::uint64_t piece_bytes = std::uint64_t{4} << 20;

/// Request of rank 0 to all: elements of a tensor. No tensor: all is written.
struct Request {
  std::int64_t tensor = -1;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class Pieces {
 public:
  Pieces(const std::vector<SpreadTensor>& tensors, comm::ProcessGroup& world)
      : tensors_(tensors), world_(world) {}

  /// Piece on rank 0, summed from all ranks.
  const std::vector<float>& ask(Request request) {
    tell(request);
    sum(request);
    return values_;
  }
  /// Loop of all other ranks: contributes to each requested piece until rank 0 has all.
  void serve() {
    for (Request request = tell({}); request.tensor >= 0; request = tell({})) sum(request);
  }
  void finish() { tell({}); }

 private:
  Request tell(Request request) {
    constexpr std::int64_t words = sizeof(Request) / 4;
    world_.broadcast(device::Tensor(&request, device::DType::i32, {words}), 0);
    return request;
  }
  void sum(const Request& request) {
    const auto count = request.end - request.begin;
    values_.assign(static_cast<std::size_t>(count), 0.0F);
    tensors_[static_cast<std::size_t>(request.tensor)].put(request.begin, request.end,
                                                           values_.data());
    world_.all_reduce(device::Tensor(values_.data(), device::DType::f32, {count}));
  }

  const std::vector<SpreadTensor>& tensors_;
  comm::ProcessGroup& world_;
  std::vector<float> values_;
};

}  // namespace

void write_spread_tensors(const std::filesystem::path& file,
                          const std::vector<SpreadTensor>& tensors, comm::ProcessGroup& world) {
  Pieces pieces(tensors, world);
  base::Status written;
  if (world.rank() != 0) {
    pieces.serve();
  } else {
    std::vector<SafetensorsOutput> outputs;
    for (std::size_t index = 0; index < tensors.size(); ++index) {
      outputs.push_back(
          {tensors[index].name, device::DType::f32, tensors[index].shape,
           [&pieces, index](std::int64_t begin, std::int64_t end, const device::Tensor& part) {
             const auto& values = pieces.ask({static_cast<std::int64_t>(index), begin, end});
             std::copy(values.begin(), values.end(), part.f32());
           }});
    }
    SafetensorsWriteOptions options;
    options.piece_bytes = piece_bytes;
    written = comm::status_of([&] { write_safetensors_file(file, outputs, options); });
    pieces.finish();
  }
  comm::agree(world, written);
}

}  // namespace trireme::huggingface
