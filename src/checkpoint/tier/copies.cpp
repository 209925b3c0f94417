// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/tier/copies.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/node_tier.hpp"

#include "checkpoint/save/step_files.hpp"

#include <algorithm>

namespace trireme::checkpoint {
namespace {

constexpr int copy_tag = 0x10AF;
constexpr int record_tag = copy_tag + 1;
/// Elements of one message.
constexpr std::int64_t message_elements = std::int64_t{1} << 26;

/// Tensors like a rank's shards, one after the other from `at` on.
std::vector<device::Tensor> shards_at(std::byte* at, const Contents& contents, int rank) {
  std::vector<device::Tensor> shards;
  for (const auto& bucket : contents.buckets) {
    if (!bucket.files.position_of(static_cast<std::size_t>(rank))) continue;
    shards.push_back({at, bucket.dtype, {bucket.shard_elements}});
    at += bucket.shard_bytes();
  }
  return shards;
}

/// Visits a shard message by message: both ends cut it alike.
template <typename Visit>
void each_message(const device::Tensor& shard, const Visit& visit) {
  auto* const bytes = static_cast<std::byte*>(shard.raw());
  const auto size = static_cast<std::int64_t>(device::size_of(shard.dtype()));
  for (std::int64_t at = 0; at < shard.element_count(); at += message_elements) {
    const auto count = std::min(message_elements, shard.element_count() - at);
    visit(device::Tensor(bytes + at * size, shard.dtype(), {count}));
  }
}

}  // namespace

Copies::Copies(const SaveRequest& request, int rank) : request_(request) {
  if (request.tier == nullptr) return;
  holders_ = request.tier->holders(rank);
  auto* at = request.copies.data();
  for (const auto owner : request.tier->owners(rank)) {
    received_.push_back({owner, shards_at(at, request.contents, owner), {}});
    at += request.contents.bytes_in_file(static_cast<std::size_t>(owner));
  }
  TRIREME_EXPECT(at <= request.copies.data() + request.copies.size(),
                 "there is memory for the values of other ranks");
}

Copies::~Copies() {
  try {
    wait();
  } catch (const std::exception&) {
    // A peer is lost, which the run's own waits report.
    works_.clear();
  }
}

void Copies::start(comm::ProcessGroup& world) {
  if (started_) return;
  started_ = true;
  for (const auto& [owner, shards, original] : received_) {
    for (const auto& shard : shards) {
      each_message(shard, [&, from = owner](const device::Tensor& part) {
        works_.push_back(world.start_receive(part, from, copy_tag));
      });
    }
  }
  for (const auto holder : holders_) {
    for (const auto& shard : request_.shards) {
      each_message(shard, [&](const device::Tensor& part) {
        works_.push_back(world.start_send(part, holder, copy_tag));
      });
    }
  }
}

bool Copies::poll() {
  std::erase_if(works_, [](comm::Work& work) { return work.poll(); });
  return works_.empty();
}

void Copies::wait() {
  for (auto& work : works_) work.wait();
  works_.clear();
}

void Copies::exchange_records(const StoredFile& mine, comm::ProcessGroup& world) {
  own_ = FileRecord(mine);
  for (auto& received : received_) {
    works_.push_back(world.start_receive(received.original.words(), received.owner, record_tag));
  }
  for (const auto holder : holders_) {
    works_.push_back(world.start_send(own_.words(), holder, record_tag));
  }
  wait();
}

void Copies::write(const SaveOptions& options, const std::filesystem::path& folder) const {
  auto request = request_;
  for (const auto& [owner, shards, record] : received_) {
    request.shards = shards;
    const auto original = record.file_of(static_cast<std::size_t>(owner));
    const auto copy = write_shard(options, folder, request, static_cast<std::size_t>(owner));
    if (copy.bytes == original.bytes && copy.checksums_sha256 == original.checksums_sha256 &&
        copy.digests_sha256 == original.digests_sha256) {
      continue;
    }
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("the copy of '{}' that came from rank {} is not what that rank has written "
                     "(memory or network have changed it on the way); this checkpoint is not "
                     "saved, older ones are untouched",
                     original.name, owner));
  }
}

}  // namespace trireme::checkpoint
