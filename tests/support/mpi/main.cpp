// SPDX-License-Identifier: Apache-2.0
// Main of every MPI test: each rank runs every test case; the test fails if any rank does.
#define CATCH_CONFIG_RUNNER
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "watchdog.hpp"
#include "world.hpp"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

namespace trireme::testing {
namespace {

comm::MpiRuntime* runtime = nullptr;
Watchdog* watchdog = nullptr;

/// Tells the watchdog of every test case.
struct Listener : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    if (watchdog != nullptr) watchdog->enter(info.name);
  }
};
CATCH_REGISTER_LISTENER(Listener)

/// Rank 0 reports as Catch does; the others speak only when they fail.
int run_session(Catch::Session& session, int rank) {
  if (rank == 0) return session.run();
  const auto path = base::format("/tmp/trireme-test-{}-{}.txt", ::getpid(), rank);
  session.configData().outputFilename = path;
  const int failures = session.run();
  std::ifstream report(path);
  if (failures != 0) std::cout << "---- rank " << rank << "\n" << report.rdbuf() << std::flush;
  ::unlink(path.c_str());
  return failures;
}

int run_everywhere(Catch::Session& session) {
  const auto world = runtime->make_world({comm::Backend::mpi, 60});
  std::int32_t failures = run_session(session, world->rank());
  const device::Tensor any(&failures, device::DType::i32, {1});
  world->all_reduce(any, comm::ReduceOp::max);
  return failures;
}

}  // namespace

comm::MpiRuntime& mpi() {
  return *runtime;
}

void still_going(const std::string& part) {
  if (watchdog != nullptr) watchdog->enter(part);
}

}  // namespace trireme::testing

int main(int argc, char** argv) {
  using namespace trireme;
  Catch::Session session;
  if (const int mistake = session.applyCommandLine(argc, argv); mistake != 0) return mistake;
  comm::MpiRuntime mpi;
  base::log::configure({{mpi.world_rank().value(), mpi.world_size(), mpi.node_name()},
                        base::log::Level::info,
                        false,
                        ""});
  testing::runtime = &mpi;
  testing::Watchdog watchdog(testing::Watchdog::limit_from(std::getenv("TRIREME_TEST_TIMEOUT")),
                             [&] { return mpi.activity(); });
  testing::watchdog = &watchdog;
  int failures = 0;
  const auto code = mpi.run([&] {
    failures = testing::run_everywhere(session);
    return base::ExitCode::done;
  });
  return failures != 0 ? 1 : static_cast<int>(code);
}
