// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/nccl/p2p.hpp"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace trireme::comm::nccl {

/// Group of the members of `host` for tensors of a device, over a communicator whose initialization
/// has begun.
class NcclGroup final : public ProcessGroup {
 public:
  NcclGroup(const Setting& setting, std::unique_ptr<ProcessGroup> host,
            std::unique_ptr<CommStream> comm_stream);

  const char* backend() const override { return "nccl"; }
  bool moves_by_itself() const override { return true; }
  ProcessGroup& host_group() override { return *host_; }

  Work start_all_reduce(const device::Tensor& x, ReduceOp op) override;
  Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor& part,
                            const Cuts& cuts) override;
  Work start_all_gather(const device::Tensor& part, const device::Tensor& whole,
                        const Cuts& cuts) override;
  Work start_all_to_all(const device::Tensor& from, const device::Tensor& to) override;
  Work start_broadcast(const device::Tensor& x, int root) override;
  Work start_send(const device::Tensor& x, int peer, int tag) override;
  Work start_receive(const device::Tensor& x, int peer, int tag) override;
  void barrier() override;
  std::unique_ptr<Registration> register_memory(const device::Tensor& memory,
                                                Offsets offsets) override;
  std::unique_ptr<Registration> register_for_messages(const device::Tensor& memory) override;

  /// Ends a registration by register_for_messages().
  void forget_for_messages(const device::Tensor& memory);

 private:
  using Step = NcclOperation::Step;

  Work collective(const char* operation, const device::Tensor& whole, std::vector<Step> steps);
  Step scatter_step(const device::Tensor& whole, void* part, std::size_t part_count) const;
  Step gather_step(const void* part, const device::Tensor& whole, std::size_t part_count) const;

  /// A part of a tensor that is not empty: its owner's position, its place, its elements.
  struct OwnedPart {
    int owner;
    std::byte* begin;
    std::size_t count;
  };
  using PartCall = std::function<Result(const OwnedPart& part, Comm* comm, void* stream)>;
  /// One call for each part of `whole`, in groups as large as NCCL takes: its own collectives have
  /// equal parts alone.
  std::vector<Step> steps_of_parts(const device::Tensor& whole, const Cuts& cuts,
                                   const PartCall& call) const;

  Peer& peer_at(int position);
  OperationLabel message_label(const char* operation, const device::Tensor& x, int peer, int tag);

  Setting setting_;
  std::unique_ptr<ProcessGroup> host_;
  std::unique_ptr<CommStream> comm_stream_;
  /// Registered memory of messages, for peers that connect later.
  std::vector<device::Tensor> of_messages_;
  std::map<int, std::unique_ptr<Peer>> peers_;
  std::uint64_t collectives_started_ = 0;
  std::uint64_t messages_started_ = 0;
};

}  // namespace trireme::comm::nccl
