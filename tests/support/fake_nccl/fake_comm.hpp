// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/fake_nccl/fake_nccl.hpp"

#include <chrono>

namespace trireme::testing {

/// Numbers on their way between the host's ranks.
struct FakeTransfer {
  std::vector<std::byte> bytes;
  comm::Work work;
};

/// Use that a member makes of memory in an operation.
struct FakeUse {
  std::int64_t known = 0;
  /// In memory that NCCL has allocated, where others reach it; -1 elsewhere.
  std::int64_t from = -1;
  std::int64_t to = -1;
};

device::DType dtype_of(comm::nccl::DataType type);

/// A communicator of FakeNccl.
class FakeComm : public std::enable_shared_from_this<FakeComm> {
 public:
  /// Part of a call: a collective, or a message of a group of them.
  struct Part {
    enum class Kind { all_reduce, reduce_scatter, reduce, all_gather, broadcast, send, receive };
    Kind kind = Kind::all_reduce;
    const void* from = nullptr;
    void* to = nullptr;
    /// Elements of `from`, or of `to` for what is received.
    std::int64_t count = 0;
    comm::nccl::DataType type = comm::nccl::DataType::f32;
    comm::nccl::Reduction op = comm::nccl::Reduction::sum;
    /// Root, or the other end.
    int peer = 0;
  };

  FakeComm(FakeNccl& nccl, std::uint64_t id) : nccl_(nccl), id_(id) {}

  /// Once it is known who the members are.
  void settle(std::vector<int> members, int rank);
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<int>& members() const { return members_; }
  std::uint64_t id() const { return id_; }

  /// The work that `call` begins is done after enough looks, and once `until` holds.
  void begin(const char* call, std::function<bool()> until);
  comm::nccl::Result look();
  void abort() { aborted_ = true; }

  /// Memory that is known from now on; what names it. Throws where it is known already, or where a
  /// symmetric window is none that the library has allocated.
  void* add_registration(const void* data, std::size_t bytes);
  void remove_registration(void* handle);
  /// Throws where some is left: the memory may be gone before the communicator is.
  void expect_no_registrations() const;

  /// Work of the stream, once this call has been done.
  void issue(const char* call, std::vector<Part> parts, void* stream);
  /// Begins to give `values` to all members and take theirs.
  std::vector<FakeTransfer> exchange(const void* values, std::size_t bytes, int kind = 0);

 private:
  struct Run;

  bool advance(Run& run);
  void start(Run& run);
  void complete(Run& run);
  std::vector<std::byte> reduced(const Part& part, const std::vector<FakeTransfer>& inputs) const;
  FakeTransfer send_to(int position, const void* values, std::size_t bytes, int tag);
  FakeTransfer receive_from(int position, std::size_t bytes, int tag);
  int tag(int kind) const;

  FakeNccl& nccl_;
  std::uint64_t id_;
  std::vector<int> members_;
  int rank_ = 0;
  std::string call_ = "the making of a communicator";
  int looks_left_ = 0;
  std::function<bool()> until_;
  std::function<void()> then_;
  bool aborted_ = false;
  struct Range {
    const std::byte* begin = nullptr;
    std::size_t bytes = 0;
  };
  /// Where memory of an operation lies. Throws where it was registered once, and is no more.
  struct Place {
    bool known = false;
    std::int64_t offset = -1;
  };
  Place place_of(const void* data, std::size_t bytes) const;
  FakeUse note_use(const Part& part);
  /// Begins to tell the other members.
  std::vector<FakeTransfer> tell_use(const Part& part, const FakeUse& use);
  /// Throws where others' memory is registered and this one's is not, or at another offset.
  void expect_like(const Part& part, const FakeUse& use,
                   const std::vector<FakeTransfer>& others) const;

  std::map<void*, Range> registrations_;
  /// That were known once, and are not.
  std::vector<Range> former_;
  std::uintptr_t handles_made_ = 0;
  int under_way_ = 0;
  int looks_under_way_ = 0;
};

}  // namespace trireme::testing
