// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/host_tier.hpp"

#include <cstring>
#include <utility>

namespace trireme::device {
namespace {

void copy_at_home(void* to, const void* from, std::size_t count) {
  if (count > 0) std::memcpy(to, from, count);
}

}  // namespace

HostTier::HostTier(Device& device, const Arena& homes)
    : PassingDevice(device),
      homes_(homes),
      in_(device.side_stream(Priority::overlapped)),
      out_(device.side_stream(Priority::overlapped)) {}

bool HostTier::is_home(const void* address) const {
  const auto whole = homes_.whole();
  if (!whole) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(whole.raw());
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= begin && at - begin < whole.byte_count();
}

Event HostTier::fetch(std::span<const Guest> guests, const Event& free) {
  for (const auto& guest : guests) moved_bytes_ += guest.home.byte_count();
  if (homes_.is_measuring()) return {};
  if (!in_) {
    for (const auto& guest : guests) inner().copy_in(guest.home.raw(), guest.place);
    return {};
  }
  in_->follow(free);
  if (is_storing_) in_->follow(out_->record());
  for (const auto& guest : guests) in_->copy_in(guest.home.raw(), guest.place);
  is_fetching_ = true;
  return in_->record();
}

Event HostTier::store(std::span<const Guest> guests, const Event& ready) {
  for (const auto& guest : guests) moved_bytes_ += guest.home.byte_count();
  if (homes_.is_measuring()) return {};
  if (!out_) {
    for (const auto& guest : guests) inner().copy_out(guest.place, guest.home.raw());
    return {};
  }
  out_->follow(ready);
  for (const auto& guest : guests) out_->copy_out(guest.place, guest.home.raw());
  is_storing_ = true;
  return out_->record();
}

void HostTier::copy_in(const void* from, const Tensor& to) {
  if (!is_home(to.raw())) return inner().copy_in(from, to);
  expect_contiguous(to);
  await_copies();
  copy_at_home(to.raw(), from, to.byte_count());
}

void HostTier::copy_out(const Tensor& from, void* to) {
  if (!is_home(from.raw())) return inner().copy_out(from, to);
  expect_contiguous(from);
  await_copies();
  copy_at_home(to, from.raw(), from.byte_count());
}

void HostTier::synchronize() {
  inner().synchronize();
  await_copies();
}

/// Stores wait for the device's work, and with it for what was fetched for that.
void HostTier::await_copies() {
  if (std::exchange(is_fetching_, false)) in_->record().wait();
  if (std::exchange(is_storing_, false)) out_->record().wait();
}

}  // namespace trireme::device
