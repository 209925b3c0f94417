// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"

#include "comm/core/tensor_checks.hpp"
#include "comm/mpi/group.hpp"

namespace trireme::comm {
namespace {

using device::DType;
using device::Tensor;

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::i32:
      return MPI_INT32_T;
    case DType::bf16:
    case DType::e4m3:
      break;
  }
  throw base::Error(base::ExitCode::usage,
                    "the MPI library cannot add bf16 (it has no such type); use backend mpi or "
                    "shared");
}

int count_of(std::int64_t count) {
  TRIREME_EXPECT(count <= INT32_MAX, "the MPI library counts in 32 bits");
  return static_cast<int>(count);
}

int bytes_in(const Tensor& x) {
  return count_of(static_cast<std::int64_t>(x.byte_count()));
}

class LibraryGroup final : public MpiGroup {
 public:
  using MpiGroup::MpiGroup;

  const char* backend() const override { return "library"; }

  Work start_all_reduce(const Tensor& x, ReduceOp op) override {
    expect_whole(x);
    mpi::library_all_reduce(x.raw(), count_of(x.element_count()), type_of(x.dtype()),
                            op == ReduceOp::sum ? MPI_SUM : MPI_MAX, communicator());
    return {};
  }
  Work start_reduce_scatter(const Tensor& whole, const Tensor& part, const Cuts& cuts) override {
    expect_parts(whole, part, size(), cuts, rank());
    if (!cuts.empty()) return MpiGroup::start_reduce_scatter(whole, part, cuts);
    mpi::library_reduce_scatter(whole.raw(), part.raw(), count_of(part.element_count()),
                                type_of(whole.dtype()), communicator());
    return {};
  }
  Work start_all_gather(const Tensor& part, const Tensor& whole, const Cuts& cuts) override {
    expect_parts(whole, part, size(), cuts, rank());
    if (!cuts.empty()) return MpiGroup::start_all_gather(part, whole, cuts);
    mpi::library_all_gather(part.raw(), whole.raw(), bytes_in(part), communicator());
    return {};
  }
  Work start_all_to_all(const Tensor& from, const Tensor& to) override {
    expect_alike(from, to, size());
    mpi::library_all_to_all(from.raw(), to.raw(), bytes_in(from) / size(), communicator());
    return {};
  }
  Work start_broadcast(const Tensor& x, int root) override {
    expect_whole(x);
    expect_position(root, size());
    mpi::library_broadcast(x.raw(), bytes_in(x), root, communicator());
    return {};
  }
};

}  // namespace

std::unique_ptr<ProcessGroup> make_library_group(std::string name, std::vector<base::Rank> ranks,
                                                 MpiGroup::Wiring wiring) {
  return std::make_unique<LibraryGroup>(std::move(name), std::move(ranks), std::move(wiring));
}

}  // namespace trireme::comm
