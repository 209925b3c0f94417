#include "trireme/device/device.hpp"

#include <cstring>

namespace trireme::device {
namespace {

void copy_bytes(void* to, const void* from, std::size_t count) {
  if (count > 0 && to != from) std::memcpy(to, from, count);
}

class HostDevice final : public Device {
 public:
  const char* name() const override { return "host"; }
  bool is_host() const override { return true; }
  Arena arena(Purpose purpose, std::size_t capacity_bytes) override {
    return Arena::host(purpose, capacity_bytes);
  }
  Arena staging(Purpose purpose, std::size_t capacity_bytes) override {
    return Arena::host(purpose, capacity_bytes);
  }
  void copy_in(const void* from, const Tensor& to) override {
    expect_contiguous(to);
    copy_bytes(to.raw(), from, to.byte_count());
  }
  void copy_out(const Tensor& from, void* to) override {
    expect_contiguous(from);
    copy_bytes(to, from.raw(), from.byte_count());
  }
  Event record() override { return {}; }
  void synchronize() override {}
  std::unique_ptr<SideStream> side_stream() override { return nullptr; }
};

}  // namespace

void expect_contiguous(const Tensor& x) {
  TRIREME_EXPECT(x.contiguous(), "host and device copy contiguous tensors, not " + x.text());
}

Device& host_device() {
  static HostDevice device;
  return device;
}

Tensor HostMirror::of(const Tensor& x) {
  if (device_.is_host() || !x) return x;
  expect_contiguous(x);
  blocks_.push_back(std::make_unique<std::byte[]>(x.byte_count()));
  pairs_.push_back({x, x.moved_to(blocks_.back().get())});
  return pairs_.back().here;
}

void HostMirror::fetch() {
  for (const auto& pair : pairs_) device_.copy_out(pair.there, pair.here.raw());
  device_.synchronize();
}

void HostMirror::store() {
  for (const auto& pair : pairs_) device_.copy_in(pair.here.raw(), pair.there);
  device_.synchronize();
}

}  // namespace trireme::device
