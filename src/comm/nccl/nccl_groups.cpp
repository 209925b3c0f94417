#include "trireme/base/format.hpp"
#include "trireme/comm/nccl.hpp"

#include "comm/nccl/nccl_group.hpp"
#include "comm/nccl/nccl_operation.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace trireme::comm {
namespace nccl {

/// The communicator that those of groups come from.
class Link {
 public:
  explicit Link(const Setting& shared) : setting(shared), lane(shared, device::Priority::awaited) {}

  Communicator& parent() { return lane.communicator; }

  Setting setting;
  Lane lane;
  std::string name;
  std::vector<base::Rank> ranks;
  std::uint64_t made = 0;

  OperationLabel label(const char* operation = "make_group") {
    return {operation, name, ranks, ++made, setting.timeout_seconds};
  }
};

namespace {

/// What each rank gives to the meeting: an id, where it makes one.
struct Offer {
  Result result = Result::success;
  UniqueId id;
};

/// Those who make them, far apart from each other: each then answers as many ranks.
bool makes_id(int rank, int ids, int ranks) {
  for (int id = 0; id < ids; ++id) {
    if (rank == static_cast<int>(static_cast<std::int64_t>(id) * ranks / ids)) return true;
  }
  return false;
}

/// All ids, in the order of the ranks that made them.
std::vector<UniqueId> exchange_ids(const Setting& setting, ProcessGroup& host, int ids) {
  constexpr std::int64_t words = sizeof(Offer) / sizeof(std::int32_t);
  Offer mine;
  if (makes_id(host.rank(), ids, host.size())) mine.result = setting.api().get_unique_id(&mine.id);
  std::vector<Offer> all(static_cast<std::size_t>(host.size()));
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

std::string nccl_version_text(int version) {
  return base::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

NcclGroups::NcclGroups(const NcclLibrary& library, MpiRuntime& mpi, ProcessGroup& host,
                       device::Device& device, const NcclOptions& options) {
  const nccl::Setting setting{library,
                              &mpi.progress(),
                              &device,
                              options.timeout_seconds,
                              mpi.world_rank(),
                              std::make_shared<nccl::Witness>(options.log, options.ras_address,
                                                              library.version, host.size()),
                              options.registration};
  link_ = std::make_unique<nccl::Link>(setting);
  link_->name = host.name();
  link_->ranks = host.ranks();
  auto ids =
      nccl::exchange_ids(setting, host, nccl::id_count(setting, host.size(), options.ranks_per_id));
  link_->parent().begin([&](nccl::Comm** comm, nccl::Config* config) {
    const auto& api = setting.api();
    if (ids.size() == 1) return api.init_rank(comm, host.size(), ids[0], host.rank(), config);
    return api.init_rank_scalable(comm, host.size(), host.rank(), static_cast<int>(ids.size()),
                                  ids.data(), config);
  });
  nccl::await_birth(link_->parent(), link_->label(), setting);
}

NcclGroups::~NcclGroups() = default;

void NcclGroups::try_out() {
  const auto& setting = link_->setting;
  auto arena = setting.device->arena(device::Purpose::communication, device::Arena::alignment);
  const auto sum = arena.allocate(device::DType::i32, {1});
  const std::int32_t mine = setting.self.value() + 1;
  setting.device->copy_in(&mine, sum);
  const auto label = link_->label("try_out");
  work_of(std::make_unique<nccl::Collective>(
              setting, label, link_->lane,
              std::vector<nccl::NcclOperation::Step>{[&](nccl::Comm* comm, void* stream) {
                return setting.api().all_reduce(sum.raw(), sum.raw(), 1, nccl::DataType::i32,
                                                nccl::Reduction::sum, comm, stream);
              }}))
      .wait();
  std::int32_t found = 0;
  setting.device->copy_out(sum, &found);
  setting.device->synchronize();
  std::int32_t due = 0;
  for (const auto rank : link_->ranks) due += rank.value() + 1;
  if (found == due) return;
  throw base::Error(base::ExitCode::peer,
                    base::format("the first sum of all ranks over NCCL {} is {} where {} is due (a "
                                 "sum that is wrong makes training wrong); comm.backend = staged "
                                 "does without NCCL",
                                 nccl_version_text(setting.library.version), found, due));
}

std::unique_ptr<ProcessGroup> NcclGroups::split(std::unique_ptr<ProcessGroup> group,
                                                device::Priority priority) {
  const auto& setting = link_->setting;
  auto lane = group ? std::make_unique<nccl::Lane>(setting, priority) : nullptr;
  // Groups of one axis do not overlap, so that a member's number is theirs alone.
  const int color = group ? std::min_element(group->ranks().begin(), group->ranks().end())->value()
                          : nccl::no_color;
  const int key = group ? group->rank() : 0;
  nccl::Communicator none(setting);
  auto& part = lane ? lane->communicator : none;
  part.begin([&](nccl::Comm** comm, nccl::Config* config) {
    const auto result = setting.api().split(link_->parent().raw(), color, key, comm, config);
    link_->parent().note(result, "ncclCommSplit");
    return result;
  });
  nccl::await_birth(link_->parent(), link_->label(), setting);
  nccl::await_birth(part, link_->label(), setting);
  if (!group) return nullptr;
  return std::make_unique<nccl::NcclGroup>(setting, std::move(group), std::move(lane));
}

}  // namespace trireme::comm
