// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/cuda_libraries.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using base::Environment;
using base::places_of_cuda_library;
using Names = std::vector<std::string>;

namespace {

constexpr const char* library = "libcublasLt.so.13";

/// A system of its own with the library in the folders that are asked for.
class FakeSystem {
 public:
  std::string with(const std::string& folder) {
    return folder_.write(folder + "/" + library, "").string();
  }
  std::string at(const std::string& path) const { return (folder_.path() / path).string(); }
  void add_program(const std::string& path) { folder_.write(path, ""); }
  void add_link(const std::string& path, const std::string& target) {
    const auto link = folder_.path() / path;
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::create_symlink(target, link);
  }
  Names places(std::map<std::string, std::string, std::less<>> variables) const {
    return places_of_cuda_library(library, Environment(std::move(variables)), folder_.path());
  }

 private:
  tests::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a CUDA library is first looked for where the system's loader looks") {
  const FakeSystem system;
  CHECK(system.places({}) == Names{library});
  CHECK(system.places({{"CUDA_HOME", "/nowhere"}, {"PATH", ":/nowhere:"}}) == Names{library});
}

TEST_CASE("a CUDA library is found in toolkits, the chosen one before those of the system") {
  FakeSystem system;
  const auto of_system = system.with("usr/local/cuda-13.0/lib64");
  const auto chosen = system.with("toolkit/targets/x86_64-linux/lib");
  const auto beside_compiler = system.with("other/lib64");
  system.add_program("other/bin/nvcc");
  CHECK(system.places({}) == Names{library, of_system});
  CHECK(system.places({{"CUDA_HOME", system.at("toolkit")},
                       {"CUDA_PATH", system.at("toolkit")},
                       {"PATH", system.at("empty") + ":" + system.at("other/bin")}}) ==
        Names{library, chosen, beside_compiler, of_system});
}

TEST_CASE("a CUDA library is found in the wheels of any interpreter") {
  FakeSystem system;
  const auto of_environment = system.with("venv/lib/python3.12/site-packages/nvidia/cu13/lib");
  const auto of_conda = system.with("conda/lib/python3.11/site-packages/nvidia/cublas/lib");
  const auto of_folder = system.with("packages/nvidia/cublas/lib");
  const auto of_path = system.with("opt/python/lib/python3.13/site-packages/nvidia/cu13/lib");
  system.add_program("opt/python/bin/python3");
  const auto of_user = system.with("home/.local/lib/python3.11/site-packages/nvidia/cublas/lib");
  const auto of_site = system.with("usr/local/lib/python3.11/dist-packages/nvidia/cublas/lib");
  const auto of_distribution = system.with("usr/lib/python3/dist-packages/nvidia/cublas/lib");
  system.with("usr/lib/python2.7/site-packages/nvidia/cublas/lib");
  CHECK(system.places({{"VIRTUAL_ENV", system.at("venv")},
                       {"CONDA_PREFIX", system.at("conda")},
                       {"PYTHONPATH", system.at("packages")},
                       {"PATH", system.at("opt/python/bin") + ":" + system.at("venv/bin")},
                       {"HOME", system.at("home")}}) == Names{library, of_environment, of_conda,
                                                              of_folder, of_path, of_user, of_site,
                                                              of_distribution});
}

TEST_CASE("a CUDA library is found in the wheels of the interpreter that a link on PATH leads to") {
  FakeSystem system;
  const auto of_venv = system.with("opt/torch/.venv/lib/python3.12/site-packages/nvidia/cu13/lib");
  const auto of_base = system.with("opt/base/lib/python3.12/site-packages/nvidia/cu13/lib");
  system.add_program("opt/base/bin/python3.12");
  system.add_link("opt/torch/.venv/bin/python3", "../../../base/bin/python3.12");
  system.add_link("bin/python3", system.at("opt/torch/.venv/bin/python3"));
  CHECK(system.places({{"PATH", system.at("bin")}}) == Names{library, of_venv, of_base});
  system.add_link("circle/python3", "python3");
  CHECK(system.places({{"PATH", system.at("circle")}}) == Names{library});
}
