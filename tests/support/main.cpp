// SPDX-License-Identifier: Apache-2.0
// Main of unit tests. Catch2 (version 2) knows no skipped tests: a case that says why it cannot run
// here (WARN("TRIREME_SKIP: ...")) ends with the exit code of a skip, unless something has failed.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <string>

namespace {

constexpr int skipped = 77;
bool says_skip = false;

struct Listener : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  bool assertionEnded(const Catch::AssertionStats& stats) override {
    const auto message = stats.assertionResult.getMessage();
    says_skip = says_skip || std::string(message).rfind("TRIREME_SKIP:", 0) == 0;
    return true;
  }
};
CATCH_REGISTER_LISTENER(Listener)

}  // namespace

int main(int argc, char** argv) {
  const int failures = Catch::Session().run(argc, argv);
  // Catch counts failures into the exit code.
  if (failures != 0) return failures == skipped ? 1 : failures;
  return says_skip ? skipped : 0;
}
