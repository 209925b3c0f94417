// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/attention/cudnn/descriptor.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include <algorithm>
#include <utility>

namespace trireme::device::cudnn {

void check(const Api& api, Status status, const std::string& call) {
  if (status == Status::success) return;
  std::array<char, 512> words{};
  api.last_message(words.data(), words.size() - 1);
  const char* const colon = words.front() == '\0' ? "" : ": ";
  throw base::Error(base::ExitCode::topology,
                    base::format("{}: {}{}{}", call, api.status_text(status), colon, words.data()));
}

Descriptor::Descriptor(const Api& api, Kind kind) : api_(&api), kind_(kind) {
  check(api, api.create_descriptor(kind, &raw_),
        base::format("cudnnBackendCreateDescriptor({})", static_cast<int>(kind)));
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : api_(other.api_), kind_(other.kind_), raw_(std::exchange(other.raw_, nullptr)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    release();
    api_ = other.api_;
    kind_ = other.kind_;
    raw_ = std::exchange(other.raw_, nullptr);
  }
  return *this;
}

Descriptor::~Descriptor() {
  release();
}

void Descriptor::release() noexcept {
  if (raw_ == nullptr) return;
  const auto status = api_->destroy_descriptor(std::exchange(raw_, nullptr));
  if (status == Status::success) return;
  try {
    base::log::local::warning("device", "cudnnBackendDestroyDescriptor: {}",
                              api_->status_text(status));
  } catch (...) {  // NOLINT(bugprone-empty-catch): a destructor has nobody left to tell
  }
}

Descriptor& Descriptor::set_raw(Attribute attribute, Type type, std::int64_t count,
                                const void* values) {
  check(*api_, api_->set_attribute(raw_, attribute, type, count, values),
        base::format("cudnnBackendSetAttribute({}, {})", static_cast<int>(kind_),
                     static_cast<int>(attribute)));
  return *this;
}

Descriptor& Descriptor::set(Attribute attribute, const Descriptor& value) {
  return set_addresses(attribute, Type::descriptor, std::array{value.raw()});
}

Descriptor& Descriptor::set_all(Attribute attribute, std::span<const Descriptor> values) {
  std::vector<RawDescriptor> raws;
  for (const auto& value : values) raws.push_back(value.raw());
  return set_addresses(attribute, Type::descriptor, raws);
}

Descriptor& Descriptor::set_handle(Attribute attribute, Handle handle) {
  return set_addresses(attribute, Type::handle, std::array{handle});
}

Descriptor& Descriptor::set_pointers(Attribute attribute, std::span<void* const> pointers) {
  return set_addresses(attribute, Type::void_pointer, pointers);
}

Descriptor& Descriptor::set_addresses(Attribute attribute, Type type,
                                      std::span<void* const> addresses) {
  return set_raw(attribute, type, static_cast<std::int64_t>(addresses.size()),
                 static_cast<const void*>(addresses.data()));
}

Descriptor& Descriptor::finalize() {
  check(*api_, api_->finalize(raw_),
        base::format("cudnnBackendFinalize({})", static_cast<int>(kind_)));
  return *this;
}

void Descriptor::get_raw(Attribute attribute, Type type, std::int64_t most, std::int64_t& count,
                         void* values) const {
  check(*api_, api_->get_attribute(raw_, attribute, type, most, &count, values),
        base::format("cudnnBackendGetAttribute({}, {})", static_cast<int>(kind_),
                     static_cast<int>(attribute)));
}

std::int64_t Descriptor::get_int64(Attribute attribute) const {
  std::int64_t value = 0;
  std::int64_t count = 0;
  get_raw(attribute, Type::int64, 1, count, &value);
  return value;
}

std::vector<NumericalNote> Descriptor::get_notes(Attribute attribute) const {
  std::array<NumericalNote, most_notes> notes{};
  std::int64_t count = 0;
  get_raw(attribute, Type::numerical_note, most_notes, count, notes.data());
  const auto known = static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, most_notes));
  return {notes.begin(), notes.begin() + static_cast<std::ptrdiff_t>(known)};
}

std::vector<Descriptor> Descriptor::get_descriptors(Attribute attribute, Kind kind,
                                                    std::int64_t most) const {
  std::int64_t there = 0;
  // A single descriptor that always exists is asked for at once; a list's length comes first.
  if (most == 1) {
    there = 1;
  } else {
    get_raw(attribute, Type::descriptor, 0, there, nullptr);
  }
  std::vector<Descriptor> made;
  std::vector<RawDescriptor> raws;
  for (std::int64_t index = 0; index < std::min(there, most); ++index) {
    raws.push_back(made.emplace_back(*api_, kind).raw());
  }
  if (raws.empty()) return made;
  std::int64_t count = 0;
  get_raw(attribute, Type::descriptor, static_cast<std::int64_t>(raws.size()), count,
          static_cast<void*>(raws.data()));
  // Descriptors that the heuristics found unfit meanwhile are left out.
  while (static_cast<std::int64_t>(made.size()) > std::max<std::int64_t>(count, 0)) {
    made.pop_back();
  }
  return made;
}

}  // namespace trireme::device::cudnn
