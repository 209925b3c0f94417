#include "trireme/runtime/device_queues.hpp"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <cstdlib>

using namespace trireme;
using Catch::Matchers::Contains;
using Variables = std::map<std::string, std::string, std::less<>>;

namespace {

runtime::DeviceQueues queues(Variables variables) {
  return runtime::device_queues(base::Environment(std::move(variables)));
}
runtime::DeviceQueues with(const std::string& value) {
  return queues({{"CUDA_DEVICE_MAX_CONNECTIONS", value}});
}

}  // namespace

TEST_CASE("a card has as many queues as CUDA allows, unless the user has chosen") {
  const auto chosen = queues({{"PATH", "/bin"}});
  CHECK(chosen.value == "32");
  CHECK_FALSE(chosen.is_warning);
  CHECK_THAT(chosen.sentence, Contains("CUDA_DEVICE_MAX_CONNECTIONS=32 set"));
  for (const char* enough : {"10", "16", "32"}) {
    const auto left = with(enough);
    CHECK_FALSE(left.value);
    CHECK(left.sentence.empty());
  }
}

TEST_CASE("fewer queues than a rank has streams are left alone with a warning") {
  // Megatron-LM's, CUDA's own, and one short of enough.
  for (const char* few : {"1", "8", "9"}) {
    const auto left = with(few);
    CHECK_FALSE(left.value);
    CHECK(left.is_warning);
    CHECK_THAT(left.sentence, Contains(std::string("= ") + few + " (a rank has up to 10 streams") &&
                                  Contains("unset it, or take 32"));
  }
  for (const char* wrong : {"", "0", "33", "-1", "many", "8 "}) {
    CAPTURE(wrong);
    const auto left = with(wrong);
    CHECK_FALSE(left.value);
    CHECK(left.is_warning);
    CHECK_THAT(left.sentence, Contains("is no number from 1 to 32"));
  }
}

TEST_CASE("what is set is what this process' libraries read") {
  const auto value = [] {
    return base::Environment::capture(environ).get("CUDA_DEVICE_MAX_CONNECTIONS");
  };
  const auto before = value();
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  runtime::export_device_queues(base::Environment(Variables{{"CUDA_DEVICE_MAX_CONNECTIONS", "4"}}));
  CHECK_FALSE(value());
  runtime::export_device_queues(base::Environment(Variables{}));
  CHECK(value() == "32");
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (before) ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", before->c_str(), 1);
}
