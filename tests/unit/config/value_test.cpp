#include <catch2/catch.hpp>

#include "trireme/config/config.hpp"

using namespace trireme;

TEST_CASE("all defaults resolve") { CHECK(config::Config::resolve({}).ok()); }
