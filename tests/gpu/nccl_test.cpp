// SPDX-License-Identifier: Apache-2.0
// The library itself on a GPU, with the one rank that a GPU of its own allows: every call of ours
// that needs no peer. Sums, moves and registered memory are checked; the first rank alone takes
// part.
#include "trireme/comm/nccl.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/comm/measure.hpp"
#include "trireme/comm/nccl_log.hpp"
#include "trireme/comm/nccl_memory.hpp"
#include "trireme/device/kernels.hpp"

#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>

using namespace trireme;
using namespace trireme::testing;
using comm::Collective;
using comm::NcclRegistration;
using comm::Offsets;
using comm::ProcessGroup;
using device::DType;

namespace {

std::unique_ptr<ProcessGroup> alone() {
  return mpi().make_group("alone", {mpi().world_rank()}, {comm::Backend::mpi, 30});
}

/// The GPU and the library; nothing after the words that mark a test as skipped.
struct Gpu {
  std::unique_ptr<device::Kernels> kernels;
  comm::NcclLibrary library;

  device::Device& device() const { return kernels->device(); }
};
std::optional<Gpu> gpu_with_nccl() {
  auto kernels = device::make_cuda_kernels(0);
  const auto library = comm::load_nccl();
  if (kernels.ok() && library.ok()) return Gpu{std::move(kernels).value(), *library};
  const auto& reason = kernels.ok() ? library.failure() : kernels.failure();
  std::printf("TRIREME_SKIP: %s\n", reason.text.c_str());
  return std::nullopt;
}

comm::NcclOptions options_with(const comm::NcclLog& log, NcclRegistration registration) {
  comm::NcclOptions options;
  options.timeout_seconds = 60;
  options.log = &log;
  options.registration = registration;
  return options;
}

void say(const std::string& text) {
  std::printf("nccl  %s\n", text.c_str());
}

}  // namespace

TEST_CASE("NCCL's collectives of one rank leave on a GPU what is due") {
  const comm::NcclLog log{base::Environment()};
  const auto gpu = gpu_with_nccl();
  if (!gpu) return;
  const auto world = alone();
  comm::NcclGroups parent(gpu->library, mpi(), *world, gpu->device(),
                          options_with(log, NcclRegistration::buffers));
  parent.try_out();
  say(base::format("{} of {}", comm::nccl_version_text(gpu->library.version), gpu->library.path));
  std::vector<std::unique_ptr<ProcessGroup>> groups;
  groups.push_back(parent.split(alone()));
  comm::MeasureOptions options;
  options.repeats = 3;
  for (const auto collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
        Collective::all_to_all, Collective::broadcast}) {
    for (const auto dtype : {DType::f32, DType::bf16}) {
      for (const std::size_t bytes : {std::size_t{4}, std::size_t{4099}, std::size_t{16} << 20}) {
        options.collective = collective;
        options.dtype = dtype;
        options.bytes = bytes;
        const auto result = comm::measure(*world, gpu->device(), groups, options).front();
        CHECK(result.backend == "nccl");
        say(base::format("{} {} {} bytes in {}", comm::name(collective),
                         dtype == DType::f32 ? "fp32" : "bf16", result.bytes,
                         base::duration_text(result.seconds)));
      }
    }
  }
  // It says in its log what it has; of one rank there is no way to anybody.
  REQUIRE(log.text().ok());
  CHECK_THAT(*log.text(), Catch::Contains(" NCCL INFO "));
  CHECK(comm::read_nccl_log(*log.text()).networks.empty());
}

TEST_CASE("NCCL takes memory of a GPU as buffers and as windows, and gives it back") {
  const comm::NcclLog log{base::Environment()};
  const auto gpu = gpu_with_nccl();
  if (!gpu) return;
  for (const auto registration : {NcclRegistration::buffers, NcclRegistration::windows}) {
    const auto world = alone();
    comm::NcclGroups parent(gpu->library, mpi(), *world, gpu->device(),
                            options_with(log, registration));
    const auto group = parent.split(alone());
    const auto shared =
        comm::with_nccl_memory(gpu->device(), gpu->library, {device::Purpose::gradients});
    auto& arenas = shared && registration == NcclRegistration::windows ? *shared : gpu->device();
    for (int round = 0; round < 3; ++round) {
      auto arena = arenas.arena(device::Purpose::gradients, std::size_t{8} << 20);
      const auto values = arena.allocate(DType::f32, {1 << 20});
      const auto known = group->register_memory(values, Offsets::same);
      const std::vector<float> numbers(1 << 20, 3.0F);
      gpu->device().copy_in(numbers.data(), values);
      group->all_reduce(values);
      std::vector<float> found(numbers.size());
      gpu->device().copy_out(values, found.data());
      gpu->device().synchronize();
      CHECK(found == numbers);
    }
    say(registration == NcclRegistration::buffers ? "buffers registered"
        : shared                                  ? "windows registered"
                                                  : "no windows in this version");
  }
}
