// SPDX-License-Identifier: Apache-2.0
#include "support/simt/marks.hpp"

namespace trireme::device::simt {

/// Forgets what the present access cannot conflict with.
void Marks::enter(const Actor& actor) {
  if (launch_ != actor.launch) {
    launch_ = actor.launch;
    writer_block_ = reader_block_ = other_reader_block_ = nobody;
  }
  if (epoch_ != actor.epoch) {
    epoch_ = actor.epoch;
    write_ = {};
    reads_ = {};
  }
}

std::optional<Conflict> Marks::with_write(const Actor& actor) const {
  if (writer_block_ != nobody && writer_block_ != actor.block) {
    return Conflict{true, writer_block_, write_.thread, writer_place_};
  }
  if (write_.thread == nobody || write_.thread == actor.thread) return std::nullopt;
  const bool same_warp = write_.thread / 32 == actor.warp;
  if (same_warp && write_.warp_epoch != actor.warp_epoch) return std::nullopt;
  return Conflict{true, actor.block, write_.thread, write_.where};
}

std::optional<Conflict> Marks::with_reads(const Actor& actor) const {
  for (const auto block : {reader_block_, other_reader_block_}) {
    if (block != nobody && block != actor.block) {
      return Conflict{false, block, nobody, reader_place_};
    }
  }
  for (const auto& warp : reads_) {
    if (warp.warp == nobody) continue;
    if (warp.warp == actor.warp && warp.warp_epoch != actor.warp_epoch) continue;
    for (const auto& touch : warp.by) {
      if (touch.thread == nobody || touch.thread == actor.thread) continue;
      return Conflict{false, actor.block, touch.thread, touch.where};
    }
  }
  return std::nullopt;
}

std::optional<Conflict> Marks::read(const Actor& actor, const Place& where) {
  enter(actor);
  auto conflict = with_write(actor);
  if (reader_block_ == nobody) {
    reader_block_ = actor.block;
    reader_place_ = where;
  } else if (reader_block_ != actor.block) {
    other_reader_block_ = actor.block;
  }
  auto* slot = &reads_[0];
  if (slot->warp != nobody && slot->warp != actor.warp) slot = &reads_[1];
  if (slot->warp != nobody && slot->warp != actor.warp) return conflict;
  if (slot->warp == nobody || slot->warp_epoch != actor.warp_epoch) {
    *slot = {actor.warp, actor.warp_epoch, {Touch{actor.thread, actor.warp_epoch, where}, {}}};
  } else if (slot->by[0].thread != actor.thread) {
    slot->by[1] = {actor.thread, actor.warp_epoch, where};
  }
  return conflict;
}

std::optional<Conflict> Marks::write(const Actor& actor, const Place& where) {
  enter(actor);
  auto conflict = with_write(actor);
  if (!conflict) conflict = with_reads(actor);
  write_ = {actor.thread, actor.warp_epoch, where};
  writer_block_ = actor.block;
  writer_place_ = where;
  written_run_ = actor.block_run;
  return conflict;
}

}  // namespace trireme::device::simt
