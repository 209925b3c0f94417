// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/save.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/background_save.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/node_tier.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/peer_error.hpp"
#include "trireme/store/object_store.hpp"

#include "checkpoint/folder_names.hpp"
#include "checkpoint/save/commit.hpp"
#include "checkpoint/save/file_record.hpp"
#include "checkpoint/save/save_run.hpp"
#include "checkpoint/save/step_files.hpp"

#include <chrono>
#include <utility>
#include <vector>

// Order of a save, as in save() at the end of this file: agree on what is saved, write this rank's
// file (on rank 0 the master file, too), gather what must be known of all files, make the manifest
// from that, commit.
namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

// 1. Agreement on what is saved.

void check_request(const SaveRequest& request, int world_size) {
  TRIREME_EXPECT(request.step >= 0 && request.tokens <= INT64_MAX,
                 "a save has a step and tokens of 0 or more");
  for (const auto& [dtype, files, elements, byte] : request.contents.buckets) {
    TRIREME_EXPECT(files.at(files.count - 1) < static_cast<std::size_t>(world_size),
                   "every file is one rank's");
  }
}

// 2. The manifest.

Manifest manifest_of(const SaveRequest& request, const Place& place,
                     std::vector<StoredFile> files) {
  Manifest manifest;
  manifest.folder = folder_of_files(place);
  manifest.step = request.step;
  manifest.tokens = request.tokens;
  manifest.tool_version = request.tool_version;
  manifest.state = request.state;
  manifest.files = std::move(files);
  manifest.contents = request.contents;
  return manifest;
}

}  // namespace

SaveRun::SaveRun(SaveRequest request, comm::ProcessGroup& world, const SaveOptions& options)
    : request_(std::move(request)),
      options_(options),
      copies_(request_, world.rank()),
      commits_(request_.tier != nullptr ? request_.tier->leads_node(world.rank())
                                        : world.rank() == 0),
      rank_(world.rank()),
      world_size_(static_cast<std::size_t>(world.size())),
      start_(std::chrono::steady_clock::now()) {
  // Contents follow from layout and model on every rank; ranks that disagree would write files
  // which the manifest misdescribes.
  comm::agree_equal(world, request_.contents.hash(), "the contents of the checkpoint",
                    "please report this");
  report_.written_bytes = request_.contents.bytes_in_file(static_cast<std::size_t>(rank_));
  report_.payload_bytes = request_.contents.payload_bytes();
  // The same name on all nodes; and the first rank alone knows whether there is a key.
  constexpr char is_signed = '+';
  constexpr char is_unsigned = '-';
  const auto told = comm::broadcast_bytes(
      world, (request_.key.empty() ? is_unsigned : is_signed) + temporary_name(request_.step));
  if (told.front() == is_signed) options_.digests = BlockDigests::sha256;
  place_.path = path_of_save(request_.checkpoints, told.substr(1));
  bool made = false;
  try {
    comm::agree_after(world, [&] {
      check_request(request_, world.size());
      if (!commits_) return;
      place_ = make_place(options_.files, place_.path);
      made = true;
    });
  } catch (const comm::AgreedError&) {
    // Another node could not make its own. In an object store nothing is made.
    if (made && !store::is_url(place_.path)) remove_place(options_.files, place_);
    throw;
  }
}

void SaveRun::agree(const base::Status& status, comm::ProcessGroup& world) {
  try {
    comm::agree(world, status);
  } catch (const comm::AgreedError&) {
    // All ranks are here and have closed their files.
    if (commits_) remove_place(options_.files, place_);
    throw;
  }
}

void SaveRun::write_file() {
  const auto rank = static_cast<std::size_t>(rank_);
  if (commits_) look_for_step(place_);
  if (!request_.from.empty()) {
    mine_ = copy_shard(options_, place_.path, request_.from, rank);
    return write_master_file();
  }
  mine_ = write_shard(options_, place_.path, request_, rank, [this] { write_master_file(); });
}

void SaveRun::write_master_file() {
  if (!commits_ || request_.tier != nullptr || !has_master(request_.contents)) return;
  std::vector<StoredFile> shards;
  while (shards.size() < world_size_) shards.push_back({shard_name(shards.size()), 0, {}});
  master_ = write_master(options_, place_.path, manifest_of(request_, place_, std::move(shards)));
}

void SaveRun::gather(const base::Status& written, comm::ProcessGroup& world) {
  agree(written, world);
  all_ = gather_files(mine_, world);
  if (request_.tier == nullptr) return;
  copies_.exchange_records(mine_, world);
  std::string text;
  if (rank_ == 0) text = manifest_text(manifest_of(request_, place_, all_), request_.key);
  manifest_text_ = comm::broadcast_bytes(world, text);
}

void SaveRun::commit() {
  if (!commits_) return;
  if (request_.tier == nullptr) {
    if (master_) all_.push_back(*master_);
    manifest_text_ = manifest_text(manifest_of(request_, place_, std::move(all_)), request_.key);
  }
  report_.folder = checkpoint::commit(options_.files, place_, request_.step, manifest_text_,
                                      rank_ == 0 ? options_.before_commit : nullptr);
}

SaveReport SaveRun::finish(const base::Status& committed, comm::ProcessGroup& world) {
  agree(committed, world);
  report_.folder = request_.checkpoints / step_folder_name(request_.step);
  report_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  return report_;
}

SaveReport save(const SaveRequest& request, comm::ProcessGroup& world, const SaveOptions& options) {
  TRIREME_EXPECT(request.tier == nullptr, "nodes' steps are saved in the background");
  if (request.device == nullptr) {
    // By a thread: this one shows the other ranks that it is there, however slow the files are.
    BackgroundSave save(request, nullptr, world, options);
    for (;;) {
      if (auto report = save.poll(world)) return *std::move(report);
    }
  }
  SaveRun run(request, world, options);
  run.gather(comm::status_of([&] { run.write_file(); }), world);
  return run.finish(comm::status_of([&] { run.commit(); }), world);
}

}  // namespace trireme::checkpoint
