// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/comm/nccl.hpp"

#include "comm/nccl/group.hpp"
#include "comm/nccl/operation.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace trireme::comm {
namespace nccl {

/// Communicator from which the groups' communicators are split.
class ParentCommunicator {
 public:
  explicit ParentCommunicator(const Setting& shared)
      : setting(shared), comm_stream(shared, device::Priority::awaited) {}

  Communicator& communicator() { return comm_stream.communicator; }

  Setting setting;
  CommStream comm_stream;
  std::string name;
  std::vector<base::Rank> ranks;
  std::uint64_t made = 0;

  OperationLabel label(const char* operation = "make_group") {
    return {operation, name, ranks, ++made, setting.timeout_seconds};
  }
};

namespace {

/// Contribution of a rank to the exchange of ids: one id, where it makes one.
struct IdOffer {
  Result result = Result::success;
  UniqueId id;
};

/// Choice of the ranks that make an id: evenly spaced, so that each id serves as many ranks.
bool makes_id(int rank, int ids, int ranks) {
  for (int id = 0; id < ids; ++id) {
    if (rank == static_cast<int>(static_cast<std::int64_t>(id) * ranks / ids)) return true;
  }
  return false;
}

/// All ids, in the order of the ranks that made them.
std::vector<UniqueId> exchange_ids(const Setting& setting, ProcessGroup& host, int ids) {
  constexpr std::int64_t words = sizeof(IdOffer) / sizeof(std::int32_t);
  IdOffer mine;
  if (makes_id(host.rank(), ids, host.size())) mine.result = setting.api().get_unique_id(&mine.id);
  std::vector<IdOffer> all(static_cast<std::size_t>(host.size()));
  host.all_gather({&mine, device::DType::i32, {words}},
                  {all.data(), device::DType::i32, {words * host.size()}});
  std::vector<UniqueId> made;
  for (int rank = 0; rank < host.size(); ++rank) {
    const auto& offer = all[static_cast<std::size_t>(rank)];
    if (offer.result != Result::success) {
      throw base::Error(
          base::ExitCode::peer,
          base::format("rank {} cannot meet others in NCCL {}: {} (NCCL_DEBUG=INFO says more); "
                       "comm.backend = staged does without it",
                       host.ranks()[static_cast<std::size_t>(rank)].value(),
                       nccl_version_text(setting.library.version),
                       setting.api().get_error_string(offer.result)));
    }
    if (makes_id(rank, ids, host.size())) made.push_back(offer.id);
  }
  return made;
}

int id_count(const Setting& setting, int ranks, int ranks_per_id) {
  if (setting.api().init_rank_scalable == nullptr) return 1;
  return (ranks + ranks_per_id - 1) / ranks_per_id;
}

}  // namespace
}  // namespace nccl

NcclGroups::NcclGroups(const NcclLibrary& library, MpiRuntime& mpi, ProcessGroup& host,
                       device::Device& device, const NcclOptions& options) {
  const nccl::Setting setting{library,
                              &mpi.progress(),
                              &device,
                              options.timeout_seconds,
                              mpi.world_rank(),
                              std::make_shared<nccl::Diagnostics>(options.log, options.ras_address,
                                                                  library.version, host.size()),
                              options.registration,
                              options.calls_per_group};
  parent_ = std::make_unique<nccl::ParentCommunicator>(setting);
  parent_->name = host.name();
  parent_->ranks = host.ranks();
  auto ids =
      nccl::exchange_ids(setting, host, nccl::id_count(setting, host.size(), options.ranks_per_id));
  parent_->communicator().begin([&](nccl::Comm** comm, nccl::Config* config) {
    const auto& api = setting.api();
    if (ids.size() == 1) return api.init_rank(comm, host.size(), ids[0], host.rank(), config);
    return api.init_rank_scalable(comm, host.size(), host.rank(), static_cast<int>(ids.size()),
                                  ids.data(), config);
  });
  nccl::await_init(parent_->communicator(), parent_->label(), setting);
}

NcclGroups::~NcclGroups() = default;

void NcclGroups::try_out() {
  const auto& setting = parent_->setting;
  auto arena = setting.device->arena(device::Purpose::communication, device::Arena::alignment);
  const auto sum = arena.allocate(device::DType::i32, {1});
  const std::int32_t mine = setting.self.value() + 1;
  setting.device->copy_in(&mine, sum);
  const auto label = parent_->label("try_out");
  work_of(std::make_unique<nccl::Collective>(
              setting, label, parent_->comm_stream,
              std::vector<nccl::NcclOperation::Step>{[&](nccl::Comm* comm, void* stream) {
                return setting.api().all_reduce(sum.raw(), sum.raw(), 1, nccl::DataType::i32,
                                                nccl::Reduction::sum, comm, stream);
              }}))
      .wait();
  std::int32_t found = 0;
  setting.device->copy_out(sum, &found);
  setting.device->synchronize();
  std::int32_t due = 0;
  for (const auto rank : parent_->ranks) due += rank.value() + 1;
  if (found == due) return;
  throw base::Error(base::ExitCode::peer,
                    base::format("the first sum of all ranks over NCCL {} is {} where {} is due (a "
                                 "sum that is wrong makes training wrong); comm.backend = staged "
                                 "does without NCCL",
                                 nccl_version_text(setting.library.version), found, due));
}

std::unique_ptr<ProcessGroup> NcclGroups::split(std::unique_ptr<ProcessGroup> group,
                                                device::Priority priority) {
  const auto& setting = parent_->setting;
  auto comm_stream = group ? std::make_unique<nccl::CommStream>(setting, priority) : nullptr;
  // Groups of one axis do not overlap, so that a member's number identifies its group.
  const int color = group ? std::min_element(group->ranks().begin(), group->ranks().end())->value()
                          : nccl::no_color;
  const int key = group ? group->rank() : 0;
  nccl::Communicator none(setting);
  auto& part = comm_stream ? comm_stream->communicator : none;
  part.begin([&](nccl::Comm** comm, nccl::Config* config) {
    const auto result =
        setting.api().split(parent_->communicator().raw(), color, key, comm, config);
    parent_->communicator().note(result, "ncclCommSplit");
    return result;
  });
  nccl::await_init(parent_->communicator(), parent_->label(), setting);
  nccl::await_init(part, parent_->label(), setting);
  if (!group) return nullptr;
  return std::make_unique<nccl::NcclGroup>(setting, std::move(group), std::move(comm_stream));
}

}  // namespace trireme::comm
