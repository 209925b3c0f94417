// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/session.hpp"

#include <catch2/catch.hpp>

using namespace trireme;

TEST_CASE("the cache folder is the user's") {
  using Settings = std::map<std::string, std::string, std::less<>>;
  const auto folder = [](Settings variables) {
    return runtime::cache_folder(base::Environment(std::move(variables))).string();
  };
  CHECK(folder({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}}) == "/x/trireme");
  CHECK(folder({{"XDG_CACHE_HOME", "here"}, {"HOME", "/h"}}) == "/h/.cache/trireme");
  CHECK(folder({{"HOME", "/h"}}) == "/h/.cache/trireme");
  CHECK(folder({}).empty());
}

TEST_CASE("kernels are those that were asked for, with the binding's threads") {
  using Backend = runtime::ComputeOptions::Backend;
  runtime::Binding binding;
  binding.threads = 2;
  const auto name_of = [&](Backend backend) {
    return base::value_or_throw(runtime::make_kernels({.backend = backend}, binding))->name();
  };
  CHECK(std::string(name_of(Backend::reference)) == "reference");
  CHECK(std::string(name_of(Backend::cpu)).find("cpu") == 0);
  CHECK(runtime::ComputeOptions{}.gpus() == topology::GpuUse::none);
  CHECK(runtime::ComputeOptions{.backend = Backend::cuda}.gpus() == topology::GpuUse::one_each);
}
