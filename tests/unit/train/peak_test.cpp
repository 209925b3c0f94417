// SPDX-License-Identifier: Apache-2.0
#include "train/peak/peak.hpp"

#include "support/forwarding_kernels.hpp"
#include "support/temporary_folder.hpp"
#include "train/peak/kept_peak.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <fstream>
#include <thread>

using namespace trireme;

namespace {

/// A machine that is busy with something else during its first products.
class BusyAtFirst final : public testing::ForwardingKernels {
 public:
  BusyAtFirst() : ForwardingKernels(device::make_cpu_kernels(1)) {}

  static constexpr int busy_products = 2;
  static constexpr std::chrono::milliseconds busy_time{300};

  void compute(const device::Operation& operation) override {
    if (operation.get_if<device::LinearForward>() == nullptr) {
      ForwardingKernels::compute(operation);
    } else if (products_++ < busy_products) {
      std::this_thread::sleep_for(busy_time);
    }
  }
  int products() const { return products_; }

 private:
  int products_ = 0;
};

config::Config config_with(const std::vector<std::string>& settings) {
  return base::value_or_throw(
      config::Config::resolve({.files = {}, .environment = {}, .settings = settings}));
}

}  // namespace

TEST_CASE("the fastest of several products counts, so that a moment's load does not") {
  BusyAtFirst kernels;
  const double flops = train::fastest_gemm(kernels, device::DType::f32);
  CHECK(kernels.products() > BusyAtFirst::busy_products);
  const double side = 768;
  const double while_busy =
      2 * side * side * side / std::chrono::duration<double>(BusyAtFirst::busy_time).count();
  CHECK(flops > 1.2 * while_busy);
}

TEST_CASE("the peak is what the configuration says, else what was measured, and says so") {
  const auto world = comm::make_local_group("world", base::Rank{0});
  const auto kernels = device::make_cpu_kernels(1);
  const tests::TemporaryFolder folder;
  const train::PeakSubject subject{device::DType::f32, "", "a CPU; 1 thread"};
  const auto find = [&](const std::vector<std::string>& settings) {
    train::KeptPeak kept({folder.path() / "run.json", folder.path() / "user/peak.json"});
    return train::find_peak(config_with(settings), *kernels, subject, kept, *world);
  };
  const auto given = find({"numerics.peak_flops=2.5e12"});
  CHECK(given.kind == train::Peak::Kind::given);
  CHECK(given.flops == 2.5e12);
  CHECK(given.text() == "MFU divides by 2.5 TFLOP/s (numerics.peak_flops)");
  const auto measured = find({});
  CHECK(measured.kind == train::Peak::Kind::measured);
  CHECK(measured.flops > 0);
  CHECK(measured.flops == measured.gemm_flops);
  CHECK(measured.text().find("fastest fp32 products of all ranks") != std::string::npos);
  CHECK(measured.text().find("measured at this start") != std::string::npos);
  // Another start divides by the same number, and says whose it is.
  const auto again = find({});
  CHECK(again.kind == train::Peak::Kind::measured);
  CHECK(again.flops == measured.flops);
  CHECK(again.text().find("as an earlier start measured") != std::string::npos);
  // Where both numbers are known both are said.
  const train::Peak both{train::Peak::Kind::data_sheet, 8 * 989.4e12,
                         "data sheet of NVIDIA H200, dense bf16", 8 * 700e12};
  CHECK(both.text() ==
        "MFU divides by 7.92 PFLOP/s (data sheet of NVIDIA H200, dense bf16); the fastest products "
        "of all ranks at start reach 5.60 PFLOP/s (71 %)");
}

TEST_CASE("a kept peak is that of the same ranks, the larger of two files, and never lowered") {
  const tests::TemporaryFolder folder;
  const auto world = comm::make_local_group("world", base::Rank{0});
  const auto run = folder.path() / "run/peak.json";
  const auto user = folder.path() / "user/peak.json";
  const auto found = [&](const std::string& kind, const std::filesystem::path& of_run) {
    train::KeptPeak kept({of_run, user});
    kept.look_up(kind, *world);
    return kept.flops();
  };
  train::KeptPeak kept({run, user});
  // Before it is known whose peak it is nothing is kept.
  kept.raise(1e9, 1e9);
  kept.look_up("a CPU", *world);
  CHECK_FALSE(kept.flops().has_value());
  kept.raise(2e9, 2e9);
  CHECK(found("a CPU", run) == 2e9);
  CHECK_FALSE(found("another CPU", run).has_value());
  // A step has raised what the run divides by; GEMMs are as fast as they were.
  kept.raise(1.5e9, 3e9);
  CHECK(found("a CPU", run) == 3e9);
  const auto other = folder.path() / "other/peak.json";
  CHECK(found("a CPU", other) == 2e9);
  // The other run has a copy now: it goes on with it wherever its user's files are.
  std::filesystem::remove(user);
  CHECK(found("a CPU", other) == 2e9);
  // Damage is measured again.
  std::ofstream(other) << "{\"1 x a CPU";
  CHECK_FALSE(found("a CPU", other).has_value());
  std::ofstream(other) << "[]";
  CHECK_FALSE(found("a CPU", other).has_value());
}
