// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/core/operation.hpp"
#include "comm/mpi/buffer_pool.hpp"
#include "comm/mpi/p2p_batch.hpp"
#include "comm/mpi/stage.hpp"

#include <optional>
#include <vector>

namespace trireme::comm {

/// Stages one after another over one communicator.
class MpiOperation final : public PendingOperation {
 public:
  struct Route {
    MPI_Comm communicator;
    int tag;
    /// Set when an operation ends before it is done: messages of it may still be on their way,
    /// so nothing else may ever use the communicator.
    bool* broken;
  };
  MpiOperation(ProgressEngine& progress, const OperationLabel& label, Route route,
               std::vector<Stage> stages, BufferPool::Lease staging);
  MpiOperation(const MpiOperation&) = delete;
  MpiOperation& operator=(const MpiOperation&) = delete;
  ~MpiOperation() override;

  bool advance() override;
  std::vector<base::Rank> missing() const override;

 private:
  void begin_next();

  Route route_;
  std::vector<Stage> stages_;
  BufferPool::Lease staging_;
  std::size_t begun_ = 0;
  std::optional<P2pBatch> batch_;
};

}  // namespace trireme::comm
